"""The image of the job, its variables and its secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from cloudtrain.catalog.images import NoImage, image_for
from cloudtrain.catalog.network import network_settings
from cloudtrain.providers.azureml.form import ENVIRONMENT, IMAGE, VAULT_SECRET
from cloudtrain.providers.azureml.reading import fits
from cloudtrain.providers.base import Chosen, at_value
from cloudtrain.providers.nodes import node_variables
from cloudtrain.providers.secret import unusable_secrets
from cloudtrain.spec.problems import shown

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.base import Context
    from cloudtrain.providers.machine import Machine
    from cloudtrain.spec.problems import Path

SPEC_FILE = "spec.json"
ARCHIVE = "code.tar.gz"
"""Both as the command sees them: the snapshot is its working directory."""

_SECRET = "https://VAULT.vault.azure.net/secrets/NAME, with /VERSION behind it if one is meant"
# Curated names as people write them; a container image has no capitals before its tag.
_CURATED = r"AzureML-[A-Za-z0-9._-]+[:@].+"

_MOUNTS = {
    "DATASET_MOUNT_ATTRIBUTE_CACHE_TTL": (
        "60",
        "seconds until another node's file is seen; the service's own: never",
    ),
    "DATASET_UNMOUNT_TIMEOUT_SECONDS": ("600", "for the last checkpoint to reach the datastore; the service's own: 30"),
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


def variables_of(job: Job, context: Context, machine: Machine) -> dict[str, str]:
    """All but the fingerprint. The job's own win over what the machine's network and the mounts want."""
    wanted = {name: value for name, (value, _) in _MOUNTS.items()} | _network(job, machine)
    return node_variables(job, context, "azureml", spec=SPEC_FILE, code=ARCHIVE, network=wanted)


def variable_choices(job: Job, machine: Machine) -> Iterator[Chosen]:
    """What is set unless the job sets it."""
    given = job.environment.env
    for name, (value, reason) in _MOUNTS.items():
        if name not in given:
            yield Chosen(f"environment.env.{name}", value, reason)
    network = [f"{name}={value}" for name, value in _network(job, machine).items() if name not in given]
    if network:
        yield Chosen("environment.env", " ".join(network), f"for the network of {machine.name}")


def secret_notes(job: Job, context: Context) -> Iterator[str]:
    """Who may read the vault."""
    if job.environment.secrets and not context.settings["identity"]:
        yield (
            "secrets are read with the job's identity, and none is set: set azureml.identity to managed or user, "
            "unless the compute has one that may read the vault"
        )


def secret_problems(job: Job) -> Iterator[tuple[Path, str]]:
    """Secrets without a place in a key vault."""
    return unusable_secrets(job, "azureml", _SECRET, _secret_flaw)


def _secret_flaw(reference: str) -> str | None:
    return None if fits(VAULT_SECRET, reference) else f"is no secret of a key vault; write {_SECRET}"


def variable_problems(job: Job) -> Iterator[tuple[Path, str]]:
    """Values that would look replaced and are not."""
    for name, value in job.environment.env.items():
        if "${{" in value:
            text = (
                "holds ${{, which Azure ML replaces in the command only; a folder's path is ${data.NAME}, ${output} ..."
            )
            yield ("environment", "env", name), text


def _network(job: Job, machine: Machine) -> dict[str, str]:
    return network_settings(machine.instance, job.resources.nodes) if machine.instance else {}


def _named(job: Job, name: str) -> Image:
    notes = []
    if job.environment.torch:
        notes.append(f"environment.torch: {job.environment.torch} is not looked for in {name}, which the job names")
    reference = name if name.startswith("azureml:") else f"azureml:{name}" if fits(_CURATED, name) else ""
    if reference and fits(ENVIRONMENT, reference):
        if re.search(r"@[^/]+$|/labels/[^/]+$", reference):
            notes.append(f"environment.image: {name} is another image tomorrow; a version such as :3 stays what it is")
        return Image(reference, notes=tuple(notes))
    if not reference and fits(IMAGE, name):
        return Image({"image": name}, notes=tuple(notes))
    at = at_value(("environment", "image"), job.environment.image, "azureml")
    text = (
        f"{shown(name)} is neither a container image nor an environment such as azureml:NAME:VERSION or "
        "azureml://registries/azureml/environments/NAME/versions/VERSION"
    )
    return Image("", problems=((at, text),))


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
