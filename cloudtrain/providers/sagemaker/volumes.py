"""Disks: machines with an instance store use that and nothing else, the others need an EBS volume of a given size."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cloudtrain.catalog.instances import rows_of
from cloudtrain.providers.base import Chosen

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.machine import Machine
    from cloudtrain.spec.problems import Path

DEFAULT_GIB = 100
"""Room for data that is downloaded, checkpoints and the model; AWS's own SDK takes 30."""

# For types whose store the catalogue does not hold. A d at the end of a family means local disks throughout EC2.
_WITH_STORE = r"ml\.(p3dn|p4de?|p5e?n?|p6e?(-\w+)?|g4dn|g5|g6e?|g7e?|gr6f?|trn\d\w*|[a-z]\d\w*d)\.\w+"


def has_store(instance_type: str) -> bool:
    """Whether the type has an instance store: it takes no volume, no key for one, and ignores a size."""
    rows = rows_of("sagemaker", instance_type)
    return any(row.local_disk_gib for row in rows) or re.fullmatch(_WITH_STORE, instance_type) is not None


def volume_gib(job: Job, instance_type: str) -> int | None:
    """The size to send. Where there is an instance store the service ignores it: sent only if the job says one."""
    if job.resources.disk_for("sagemaker") is not None or has_store(instance_type):
        return job.resources.disk_for("sagemaker")
    return DEFAULT_GIB


def volume_problems(job: Job, machine: Machine) -> Iterator[tuple[Path, str]]:
    """More than the machine's own disks hold."""
    store, wanted = machine.instance.local_disk_gib if machine.instance else None, job.resources.disk_for("sagemaker")
    if store and wanted and wanted > store:
        text = f"{machine.name} has {store} GiB of its own disks and takes no other volume; the job asks for {wanted}"
        yield ("resources", "disk_gib"), text


def volume_chosen(job: Job, machine: Machine) -> Iterator[Chosen]:
    """The size that is sent though the job names none."""
    if job.resources.disk_for("sagemaker") is None and not has_store(machine.name):
        reason = f"{machine.name} has no disks of its own and SageMaker wants a size"
        yield Chosen("resources.disk_gib", str(DEFAULT_GIB), reason)


def volume_notes(job: Job, machine: Machine) -> Iterator[str]:
    """A size that changes nothing."""
    if job.resources.disk_for("sagemaker") is not None and has_store(machine.name):
        store = machine.instance.local_disk_gib if machine.instance else None
        size = f"{store} GiB" if store else "a fixed size"
        yield f"resources.disk_gib: storage of {machine.name} is its own disks, {size}, whatever is asked for"
