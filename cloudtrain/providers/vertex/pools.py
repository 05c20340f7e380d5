"""The worker pools: pool 0 of one node, pool 1 of the others, the same machine, disk and container in both.

Vertex AI tells a node its place by pool and index, and takes the job for done when pool 0's node is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cloudtrain.catalog.instances import instances
from cloudtrain.providers.vertex.expansion import escaped

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.machine import Machine
    from cloudtrain.spec.problems import Path

LEAST_DISK, MOST_DISK = 100, 64_000
"""GB of a boot disk; the least is also what the service gives when nothing is said."""

# The first prefix that fits decides. No source says what A4X takes: there the service's own default stands.
_DISK_TYPES = {"a3-ultragpu-": "hyperdisk-balanced", "a4-": "hyperdisk-balanced", "a4x-": "", "": "pd-ssd"}


def worker_pools(job: Job, machine: Machine, image: str, command: list[str], env: Mapping[str, str]) -> list[Any]:
    """``workerPoolSpecs``. An int64 travels as a JSON string, so ``replicaCount`` is one."""
    nodes = job.resources.nodes
    return [_pool(job, machine, image, command, env, count) for count in ([1, nodes - 1] if nodes > 1 else [1])]


def _pool(job: Job, machine: Machine, image: str, command: list[str], env: Mapping[str, str], count: int) -> Any:
    return {
        "machineSpec": machine_spec(job, machine),
        "replicaCount": str(count),
        "diskSpec": _disk_spec(job, machine.name),
        "containerSpec": {
            "imageUri": image,
            "command": list(command),
            "env": [variable(name, value) for name, value in env.items()],
        },
    }


def variable(name: str, value: str) -> dict[str, str]:
    """An item of ``env`` of which the container finds exactly ``value``."""
    return {"name": name, "value": escaped(value)}


def machine_spec(job: Job, machine: Machine) -> dict[str, Any]:
    """Both accelerator fields or none: the service refuses one without the other, and wants them for GPU-only types."""
    row = machine.instance
    if row is not None:
        native, count = row.native_accelerator, row.accelerators
    else:
        native, count = _native_accelerator(job), job.resources.accelerators_per_node or 1
    spec: dict[str, Any] = {"machineType": machine.name}
    return spec | {"acceleratorType": native, "acceleratorCount": count} if native else spec


def accelerator_problems(job: Job, machine: Machine) -> Iterator[tuple[Path, str]]:
    """For a machine that the catalogue does not hold: which accelerator is meant has to be clear."""
    if machine.instance is not None or not machine.name:
        return
    wanted = job.resources.accelerator
    if wanted and not _native_accelerator(job):
        names = " or ".join(_native_names(wanted)) or "unknown here"
        told = f"{machine.name} is not in the catalogue, and Vertex AI's name of {wanted} is {names}"
        yield ("resources", "accelerator"), f"{told}: take a machine of the catalogue"
    if job.resources.accelerators_per_node and not wanted:
        text = f"{machine.name} is not in the catalogue, so resources.accelerator has to say what is counted"
        yield ("resources", "accelerators_per_node"), text


def disk_problems(job: Job) -> Iterator[tuple[Path, str]]:
    """A disk that no machine can have."""
    size = job.resources.disk_for("vertex")
    if size is not None and not LEAST_DISK <= size <= MOST_DISK:
        yield ("resources", "disk_gib"), f"is {size}; a boot disk has {LEAST_DISK} to {MOST_DISK} GB on Vertex AI"


def _disk_spec(job: Job, machine: str) -> dict[str, Any]:
    kind = next(kind for prefix, kind in _DISK_TYPES.items() if machine.startswith(prefix))
    size = {"bootDiskSizeGb": job.resources.disk_for("vertex") or LEAST_DISK}
    return {"bootDiskType": kind} | size if kind else size


def _native_accelerator(job: Job) -> str:
    names = _native_names(job.resources.accelerator) if job.resources.accelerator else []
    return names[0] if len(names) == 1 else ""


def _native_names(accelerator: str) -> list[str]:
    return list(dict.fromkeys(row.native_accelerator for row in instances("vertex", accelerator=accelerator)))
