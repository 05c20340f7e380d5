"""The form's ``environment``: a container image, with packages that the service puts on top, or a registered one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from cloudtrain.providers.azureml.form import ENVIRONMENT
from cloudtrain.providers.azureml.reading import fits
from cloudtrain.providers.image import Image, image_of_catalogue, is_reference, refused_image, unchecked_torch
from cloudtrain.spec.problems import shown

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.machine import Machine

_REGISTERED = "azureml:"
# Curated names as people write them; a container image has no capitals before its tag.
_CURATED = r"AzureML-[A-Za-z0-9._-]+[:@].+"
_MOVES = r"@[^/]+$|/labels/[^/]+$"


def image_of(job: Job, machine: Machine) -> Image:
    """The image or registered environment that the job names, or a current image that fits."""
    named = job.environment.image_for("azureml")
    return _named(job, named) if named else image_of_catalogue(job, "azureml", "", machine)


def environment_of(image: Image) -> str | dict[str, Any]:
    """The field of the form."""
    if image.uri.startswith(_REGISTERED):
        return image.uri
    return {"image": image.uri, **({"conda_file": dict(image.conda)} if image.conda else {})}


def _named(job: Job, name: str) -> Image:
    uri = f"{_REGISTERED}{name}" if fits(_CURATED, name) else name
    if not (fits(ENVIRONMENT, uri) if uri.startswith(_REGISTERED) else is_reference(uri)):
        text = (
            f"{shown(name)} is neither a container image nor an environment such as azureml:NAME:VERSION or "
            "azureml://registries/azureml/environments/NAME/versions/VERSION"
        )
        return refused_image(job, "azureml", text)
    notes = unchecked_torch(job, "azureml", name)
    if uri.startswith(_REGISTERED) and re.search(_MOVES, uri):
        moves = f"environment.image: {name} is another image tomorrow; a version such as :3 stays what it is"
        notes = (*notes, moves)
    return Image(uri, notes=notes)
