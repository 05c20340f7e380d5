"""The variables of the processes: ours, those of the mounts and of the machine's network, and the job's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cloudtrain.providers.base import Chosen
from cloudtrain.providers.machine import network_choices, network_of
from cloudtrain.providers.nodes import node_variables
from cloudtrain.providers.shipping import ARCHIVE

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.base import Context
    from cloudtrain.providers.machine import Machine
    from cloudtrain.spec.problems import Path

_MOUNTS = {
    "DATASET_MOUNT_ATTRIBUTE_CACHE_TTL": (
        "60",
        "seconds until another node's file is seen; the service's own: never",
    ),
    "DATASET_UNMOUNT_TIMEOUT_SECONDS": ("600", "for the last checkpoint to reach the datastore; the service's own: 30"),
}


def variables_of(job: Job, context: Context, machine: Machine) -> dict[str, str]:
    """All but the fingerprint. The job's own win over what the machine's network and the mounts want."""
    # The snapshot is the working directory of the command, which itself says where spec.json lies.
    wanted = {name: value for name, (value, _) in _MOUNTS.items()} | network_of(job, machine)
    return node_variables(job, context, "azureml", spec=None, code=ARCHIVE, further=wanted)


def variable_choices(job: Job, machine: Machine) -> Iterator[Chosen]:
    """What is set unless the job sets it."""
    for name, (value, reason) in _MOUNTS.items():
        if name not in job.environment.env:
            yield Chosen(f"environment.env.{name}", value, reason)
    yield from network_choices(job, machine)


def variable_problems(job: Job) -> Iterator[tuple[Path, str]]:
    """Values that would look replaced and are not."""
    for name, value in job.environment.env.items():
        if "${{" in value:
            text = (
                "holds ${{, which Azure ML replaces in the command only; a folder's path is ${data.NAME}, ${output} ..."
            )
            yield ("environment", "env", name), text
