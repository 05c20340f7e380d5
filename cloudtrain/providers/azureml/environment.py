"""The image of the job, its variables and its secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from cloudtrain.catalog.images import NoImage, image_for
from cloudtrain.providers.azureml.form import ENVIRONMENT, IMAGE, VAULT_SECRET
from cloudtrain.providers.base import Chosen
from cloudtrain.spec.problems import shown

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.machine import Machine
    from cloudtrain.spec.problems import Path

# Curated names as people write them; a container image has no capitals before its tag.
_CURATED = re.compile(r"AzureML-[A-Za-z0-9._-]+[:@].+")

MOUNTS = {
    # Attributes of mounted files are kept for ever unless this is set: a file that another node writes stays unseen.
    "DATASET_MOUNT_ATTRIBUTE_CACHE_TTL": "60",
    # Seconds that the service waits for what is written to reach the datastore; its own 30 can cut the last checkpoint.
    "DATASET_UNMOUNT_TIMEOUT_SECONDS": "600",
}


class Image(NamedTuple):
    """The form's ``environment``, and what is to be said of it."""

    environment: str | dict[str, Any]
    chosen: tuple[Chosen, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[tuple[Path, str], ...] = ()


def image_of(job: Job, machine: Machine) -> Image:
    """The image that the job names, or a current one that fits."""
    named = job.environment.image_for("azureml")
    return _named(job, named) if named else _chosen(job, machine)


def secret_problems(job: Job) -> Iterator[tuple[Path, str]]:
    """Secrets without a place in a key vault."""
    for name, reference in job.environment.secrets_for("azureml").items():
        path: Path = ("environment", "secrets", name)
        form = "https://VAULT.vault.azure.net/secrets/NAME, with /VERSION behind it if one is meant"
        if reference is None:
            yield path, f"has no reference for azureml: give environment.secrets.{name}.azureml as {form}"
        elif not VAULT_SECRET.fullmatch(reference):
            at = (*path, "azureml") if isinstance(job.environment.secrets[name], Mapping) else path
            yield at, f"{shown(reference)} is no secret of a key vault; write {form}"


def variable_problems(job: Job) -> Iterator[tuple[Path, str]]:
    """Values that would look replaced and are not."""
    for name, value in job.environment.env.items():
        if "${{" in value:
            text = (
                "holds ${{, which Azure ML replaces in the command only; a folder's path is ${data.NAME}, ${output} ..."
            )
            yield ("environment", "env", name), text


def _named(job: Job, name: str) -> Image:
    notes = []
    if job.environment.torch:
        notes.append(f"environment.torch: {job.environment.torch} is not looked for in {name}, which the job names")
    reference = name if name.startswith("azureml:") else f"azureml:{name}" if _CURATED.fullmatch(name) else ""
    if reference and ENVIRONMENT.fullmatch(reference):
        if re.search(r"@[^/]+$|/labels/[^/]+$", reference):
            notes.append(f"environment.image: {name} is another image tomorrow; a version such as :3 stays what it is")
        return Image(reference, notes=tuple(notes))
    if not reference and IMAGE.fullmatch(name):
        return Image({"image": name}, notes=tuple(notes))
    at: Path = ("environment", "image")
    text = (
        f"{shown(name)} is neither a container image nor an environment such as azureml:NAME:VERSION or "
        "azureml://registries/azureml/environments/NAME/versions/VERSION"
    )
    return Image("", problems=(((*at, "azureml") if isinstance(job.environment.image, Mapping) else at, text),))


def _chosen(job: Job, machine: Machine) -> Image:
    if machine.problems and machine.instance is None:
        return Image("")  # which image fits depends on a machine that is not there
    try:
        image = image_for("azureml", region="", torch=job.environment.torch, instance=machine.instance)
    except NoImage as error:
        at: Path = ("environment", "torch" if job.environment.torch else "image")
        return Image("", problems=((at, str(error)),))
    chosen = Chosen("environment.image", image.uri, image.reason)
    if image.uri.startswith("azureml:"):
        return Image(image.uri, (chosen,), image.notes)
    conda = {"conda_file": image.conda} if image.conda else {}
    return Image({"image": image.uri, **conda}, (chosen,), image.notes)
