"""On which machines the job runs: serverless compute of the size it asks for, or a cluster that has its own.

A cluster decides its size and whether its nodes are low-priority; a request cannot. So what the job says of either is
not sent as if it could, and the notes say who decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cloudtrain.providers.azureml.form import DAY, LONGEST_RUNTIME, LONGEST_SPOT_RUNTIME, MOST_NODES
from cloudtrain.providers.azureml.reading import fits
from cloudtrain.providers.base import Chosen
from cloudtrain.providers.machine import Machine, machine_for

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.base import Context
    from cloudtrain.spec.problems import Path

_FRACTION = r"(?i:standard_nv(6|12|18)ads_a10_v5)"
_SHM_GIB = 8
"""Where the size of the machine is not known."""
_SERVICE_SHM_GIB = 2


def cluster_of(context: Context) -> str:
    """The cluster that the settings name; "" for serverless. The service knows no cluster called serverless."""
    name = context.settings["compute"]
    return "" if name == "serverless" else name


def machine_of(job: Job, context: Context) -> Machine:
    """The machine of every node, as far as the job decides it."""
    machine = machine_for(job, "azureml")
    cluster = cluster_of(context)
    if cluster and not job.resources.instance_for("azureml"):
        machine = _assumed(machine, cluster)
    elif cluster:
        sent = (
            f"compute {cluster} decides the VM size; {machine.name} goes out as instance_type, which only Kubernetes "
            "compute heeds"
        )
        machine = machine._replace(notes=(*machine.notes, sent))
    return machine._replace(problems=(*machine.problems, *_problems(job, machine)))


def spot_notes(job: Job, context: Context) -> Iterator[str]:
    """Who decides whether capacity can be taken away."""
    if job.spot.enabled and (cluster := cluster_of(context)):
        yield f"spot.enabled: compute {cluster} decides by its vm_priority whether its nodes are low-priority"


def runtime_problems(job: Job) -> Iterator[tuple[Path, str]]:
    """Limits longer than the service's."""
    longest = LONGEST_SPOT_RUNTIME if job.spot.enabled else LONGEST_RUNTIME
    if job.limits.runtime and job.limits.runtime.seconds > longest:
        kind = "low-priority capacity" if job.spot.enabled else "Azure ML"
        text = f"{job.limits.runtime} is too long: a job on {kind} ends after {longest // DAY} days"
        yield ("limits", "runtime"), text


def runtime_choice(job: Job) -> Iterator[Chosen]:
    """A job without a limit has none of its own."""
    if job.limits.runtime is None:
        longest = LONGEST_SPOT_RUNTIME if job.spot.enabled else LONGEST_RUNTIME
        yield Chosen(
            "limits.runtime", "none", f"Azure ML asks for no limit, and ends a job after {longest // DAY} days"
        )


def compute_fields(job: Job, context: Context, machine: Machine) -> dict[str, Any]:
    """``compute``, ``resources`` and ``distribution``."""
    cluster = cluster_of(context)
    resources: dict[str, Any] = {"instance_count": job.resources.nodes}
    if not cluster or job.resources.instance_for("azureml"):
        resources["instance_type"] = machine.name
    resources["shm_size"] = f"{_shm_gib(job, context, machine)}g"
    fields: dict[str, Any] = {"compute": f"azureml:{cluster}"} if cluster else {}
    fields["resources"] = resources
    if job.resources.nodes > 1:  # with one node a framework would wait for a second one for ever
        fields["distribution"] = {"type": "pytorch", "process_count_per_instance": 1}
    return fields


def queue_fields(job: Job, context: Context) -> dict[str, Any]:
    """Low-priority capacity, where a request can ask for it."""
    return {"queue_settings": {"job_tier": "Spot"}} if job.spot.enabled and not cluster_of(context) else {}


def shm_choice(job: Job, context: Context, machine: Machine) -> Iterator[Chosen]:
    """Why the shared memory has the size it has, unless the job says it."""
    if not job.resources.shm_for("azureml"):
        size, why = _shm_gib(job, context, machine), "the size of the machine is not known here"
        if _is_known(job, context, machine) and machine.instance:
            why = f"half the {machine.instance.memory_gib:g} GiB of {machine.name}"
        reason = f"{why}; the service's own {_SERVICE_SHM_GIB} GiB is too small for data loaders and NCCL"
        yield Chosen("resources.shm_gib", str(size), reason)


def _assumed(machine: Machine, cluster: str) -> Machine:
    """What the job asks for, held to be what the cluster has. The cluster may have what the catalogue has not."""
    decides = f"compute {cluster} decides the VM size"
    missing = [text for path, text in machine.problems if path == ("resources", "accelerator")]
    if missing:
        others = tuple(problem for problem in machine.problems if problem[0] != ("resources", "accelerator"))
        return Machine("", None, notes=(f"{decides}: {missing[0]}",), problems=others)
    reason = machine.chosen[0].reason if machine.chosen else ""
    note = f"{decides}; image and network variables are those of {machine.name} ({reason})"
    return Machine(machine.name, machine.instance, notes=(note,), problems=machine.problems)


def _problems(job: Job, machine: Machine) -> Iterator[tuple[Path, str]]:
    ranks = job.resources.nodes * job.processes
    if ranks > 1 and fits(_FRACTION, machine.name):
        text = (
            f"{machine.name} has a part of an A10, on which NCCL cannot run {ranks} processes; "
            "Standard_NV36ads_A10_v5 has a whole one"
        )
        yield ("resources", "instance"), text
    shm, row = job.resources.shm_for("azureml"), machine.instance
    if shm and row and shm > row.memory_gib:
        yield ("resources", "shm_gib"), f"{machine.name} has {row.memory_gib:g} GiB of memory, less than {shm}"
    if job.resources.nodes > MOST_NODES:
        text = f"{job.resources.nodes} nodes are too many: a distributed run has at most {MOST_NODES}"
        yield ("resources", "nodes"), text


def _is_known(job: Job, context: Context, machine: Machine) -> bool:
    return machine.instance is not None and bool(not cluster_of(context) or job.resources.instance_for("azureml"))


def _shm_gib(job: Job, context: Context, machine: Machine) -> int:
    if wanted := job.resources.shm_for("azureml"):
        return wanted
    if machine.instance and _is_known(job, context, machine):
        return max(_SERVICE_SHM_GIB, int(machine.instance.memory_gib / 2))
    return _SHM_GIB
