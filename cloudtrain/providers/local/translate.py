"""Job and options in, what to start out: plain data, from pure functions.

What a local run cannot honour is refused here, with the reason; what makes no difference on one's own machine is
named in ``LocalRequest.notes``, so that nothing is passed over in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloudtrain.errors import SpecError
from cloudtrain.job import Job
from cloudtrain.providers.local.contract import harness, node_environment
from cloudtrain.providers.local.options import LocalOptions
from cloudtrain.record.folder import RunFolder
from cloudtrain.spec.fields import for_provider, is_local

if TYPE_CHECKING:
    from cloudtrain.providers.local.rehearsal import Rehearsal

# Read once, when an interpreter or a library starts: a process that has loaded torch already would not see them.
READ_AT_START = ("PYTHON", "LD_", "DYLD_", "OMP_", "MKL_", "OPENBLAS_", "KMP_", "GOMP_", "TORCH", "PYTORCH", "ATEN_")


@dataclass(frozen=True)
class LocalRequest:
    """What the host process is asked to start."""

    spec: dict[str, Any]
    """The launch spec, for ``spec.json``."""
    nodes: list[dict[str, str]]
    """The environment of every node."""
    shm_gib: int | None
    places: Places
    notes: list[str]
    """What of the job does not apply here."""


@dataclass(frozen=True)
class Places:
    """Where the job's folders lie on this machine."""

    folder: RunFolder
    data: dict[str, Path]
    outputs: dict[str, Path]
    checkpoints: Path


@dataclass(frozen=True)
class Machine:
    """What the request depends on besides the job: this machine, as found."""

    cores: int
    gpus: tuple[str, ...] = ()


def check(job: Job, options: LocalOptions) -> None:
    """Raise SpecError for what a local run cannot do."""
    if job.process_shape == "per-node":
        raise SpecError(
            f"framework: {job.framework} runs one process per node with its own rendezvous; `run` cannot do that yet",
            hint="frameworks that run here: pytorch, accelerate, lightning, deepspeed",
        )
    unknown = sorted(set(options.data) - set(job.data))
    if unknown:
        raise SpecError(f"--data {unknown[0]}: the job has no such channel; it has {', '.join(job.data) or 'none'}")


def translate(
    job: Job,
    options: LocalOptions,
    *,
    folder: RunFolder,
    temporary: Path,
    checkpoints: Path,
    machine: Machine,
    token: str,
    rehearsal: Rehearsal | None = None,
) -> LocalRequest:
    """The request for a run in ``folder``. Raises SpecError for what is missing or cannot be done.

    ``token`` is a secret of this run's launchers; with ``rehearsal`` the nodes get a cloud's contract.
    """
    check(job, options)
    nodes = options.nodes or job.resources.nodes
    processes = options.processes or job.processes
    data = {name: data_folder(job, name, options.data) for name in job.data}
    outputs = {name: _output_folder(job, name, folder) for name in job.outputs}
    places = Places(folder, data, outputs, checkpoints)
    gpus = shared_gpus(job, options, machine)
    cores, device = max(1, machine.cores // nodes), "gpu" if gpus else "cpu"
    return LocalRequest(
        spec=rehearsal.spec(options) if rehearsal else _spec(job, options, folder, processes),
        nodes=[
            {
                **(rehearsal.environment(node, places) if rehearsal else _own_contract(job, places, node)),
                **harness(node, run=folder.path, temporary=temporary, cores=cores, device=device, token=token),
                **({"CUDA_VISIBLE_DEVICES": gpus[node] if gpus else ""} if machine.gpus else {}),
            }
            for node in range(nodes)
        ],
        shm_gib=job.resources.shm_for("local"),
        places=places,
        notes=[*_notes(job, options), *_device_notes(job, options, machine, nodes * processes, gpus)],
    )


def needs_fresh_interpreter(job: Job) -> dict[str, str]:
    """Variables of the job that must be set before torch is loaded."""
    return {name: value for name, value in job.environment.env.items() if name.startswith(READ_AT_START)}


def data_folder(job: Job, name: str, given: Mapping[str, Path]) -> Path:
    """Where channel ``name`` lies on this machine. Raises SpecError if it has no local place."""
    if name in given:
        path = given[name].absolute()
    else:
        uri = job.data[name].uri_for("local")
        if uri is None or not is_local(uri):
            raise SpecError(
                f"data.{name} has no local place" + (f": {uri}" if uri else ""),
                hint=f"give one: --data {name}=PATH, or data.{name}.uri.local in the job file",
            )
        path = job.folder / uri.removeprefix("file://")
    return path


def _own_contract(job: Job, places: Places, node: int) -> dict[str, str]:
    return node_environment(
        node,
        run=places.folder.path,
        data={name: _share(job, name, path, places.folder, node) for name, path in places.data.items()},
        outputs=places.outputs,
        checkpoints=places.checkpoints,
    )


def _share(job: Job, name: str, path: Path, folder: RunFolder, node: int) -> Path:
    return path if job.data[name].shard == "replicate" else folder.node(node) / "data" / name


def _places(job: Job) -> Iterator[tuple[str, str | None]]:
    """Key -> place on this machine, for outputs, and for checkpoints if the job says anything of them."""
    for name, value in job.outputs.items():
        yield f"outputs.{name}", for_provider(value, "local")
    if job.checkpoint.uri is not None:
        yield "checkpoint.uri", job.checkpoint.uri_for("local")


def _output_folder(job: Job, name: str, folder: RunFolder) -> Path:
    uri = for_provider(job.outputs[name], "local")
    if uri is None or not is_local(uri):
        return folder.path / "outputs" / name
    return job.folder / uri.removeprefix("file://")


def _spec(job: Job, options: LocalOptions, folder: RunFolder, processes: int) -> dict[str, Any]:
    kind = "entry" if job.entry else "module" if job.module else "task"
    env = dict(job.environment.env)
    env["CLOUDTRAIN_CHECKPOINT_KEEP"] = str(job.checkpoint.keep)
    if job.checkpoint.every:
        env["CLOUDTRAIN_CHECKPOINT_EVERY"] = str(job.checkpoint.every)
    return {
        "version": 1,
        "run_id": folder.run_id,
        "attempt": folder.attempt,
        "kind": kind,
        "target": job.start,
        "args": [*job.argv, *options.args],
        "env": env,
        "framework": job.framework,
        "processes_per_node": processes,
        "grace": options.grace,
        "start_timeout": options.start_timeout,
        "code": "code",
    }


def shared_gpus(job: Job, options: LocalOptions, machine: Machine) -> list[str] | None:
    """Those of each node; None: it trains on CPU. Raises SpecError for --device gpu where there are too few."""
    from cloudtrain.providers.local.devices import share_out

    if options.device == "cpu":
        return None
    nodes, processes = options.nodes or job.resources.nodes, options.processes or job.processes
    shared = share_out(list(machine.gpus), nodes, processes)
    if options.device == "gpu" and shared is None:
        raise SpecError(
            f"--device gpu: {nodes} x {processes} processes need as many GPUs, this machine shows {len(machine.gpus)}",
            hint="use fewer --nodes or --processes, or --device cpu",
        )
    return shared


def _notes(job: Job, options: LocalOptions) -> Iterator[str]:
    resources, environment = job.resources, job.environment
    unused = {
        "resources.instance": resources.instance,
        "resources.disk_gib": resources.disk_for("local"),
        "environment.image": environment.image,
        "environment.torch": environment.torch_for("local"),
        "environment.requirements": environment.requirements,
        "spot": job.spot.enabled or None,
        "retries.failure": job.retries.failure or None,
        "limits.pending": job.limits.pending,
        "limits.cost_usd": job.limits.cost_usd,
        "overrides": job.overrides or None,
        "tags": job.tags or None,
    }
    if options.as_:
        unused = {"environment.requirements": environment.requirements}  # the others are in its request
    else:
        unused.update({f"data.{name}.mode": channel.mode for name, channel in job.data.items()})
    names = [name for name, value in unused.items() if value is not None]
    if names:
        yield f"not used by a local run, which takes this machine and this Python as they are: {', '.join(names)}"
    if resources.shm_for("local") and options.isolation != "netns":
        yield "resources.shm_gib is applied only where nodes are isolated (--isolation netns)"
    for key, uri in _places(job):
        if uri is None or not is_local(uri):
            yield f"{key} names no place on this machine; the run's own folder is used"


def _device_notes(
    job: Job, options: LocalOptions, machine: Machine, processes: int, gpus: list[str] | None
) -> Iterator[str]:
    wanted = job.resources.accelerator
    if gpus:
        if wanted:
            yield f"the job names {wanted}; this run uses the GPUs of this machine"
        return
    if machine.gpus and options.device == "auto":
        yield f"{processes} processes need as many GPUs, this machine shows {len(machine.gpus)}: training on CPU"
    elif wanted:
        yield f"the job names {wanted}; this run trains on CPU"
