"""What becomes of every field of the job file, declared once: it drives refusals, ``catalog features`` and the docs.

Each provider has a ``capabilities.py`` with ``CAPABILITIES``; what is the same for all is here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cloudtrain.providers.base import Capability
from cloudtrain.providers.identity import asked_of

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.spec.fields import Provider
    from cloudtrain.spec.problems import Path

_ONE_PROCESS = (
    "runs one process per node with its own rendezvous, which launch.py cannot start yet; frameworks that run: "
    "pytorch, accelerate, lightning, deepspeed"
)

COMMON: tuple[Capability, ...] = (
    Capability("entry", "launcher", "launch.py starts the script on every rank"),
    Capability("module", "launcher", "launch.py starts the module on every rank"),
    Capability("task", "launcher", "launch.py starts train_ddp.py with the class on every rank"),
    Capability("args", "launcher", "travel in spec.json and reach the script byte for byte"),
    Capability("framework", "launcher", "launch.py prepares the workers for it"),
    Capability("framework=tensorflow", "refused", f"tensorflow {_ONE_PROCESS}"),
    Capability("framework=jax", "refused", f"jax {_ONE_PROCESS}"),
    Capability("framework=dataparallel", "refused", f"dataparallel {_ONE_PROCESS}"),
    Capability("resources.processes_per_node", "launcher", "launch.py starts as many ranks on every node"),
    Capability("environment.requirements", "launcher", "installed with pip once on every node before the ranks start"),
    Capability("checkpoint.keep", "launcher", "CLOUDTRAIN_CHECKPOINT_KEEP of every rank"),
    Capability("checkpoint.every", "launcher", "CLOUDTRAIN_CHECKPOINT_EVERY of every rank"),
    Capability(
        "retries.capacity", "client", "CLOUDTRAIN_POLICY, not kept yet; `cloudtrain resume` makes the next attempt"
    ),
    Capability("limits.cost_usd", "client", "CLOUDTRAIN_POLICY, not kept yet; no service has such a limit for one job"),
)


# The order of the job file.
_ORDER = (
    "name", "entry", "module", "task", "args", "code", "framework", "resources", "environment", "data", "outputs",
    "checkpoint", "spot", "retries", "limits", "tags", "overrides",
)  # fmt: skip


def in_order(capabilities: Iterable[Capability]) -> tuple[Capability, ...]:
    """As the job file has its sections; within one as they were declared, a value of a field behind the field."""
    listed = list(capabilities)
    fields = [capability.field for capability in listed]

    def place(capability: Capability) -> tuple[int, int, str]:
        field = capability.field.partition("=")[0]
        return _ORDER.index(field.partition(".")[0]), fields.index(field), capability.field

    return tuple(sorted(listed, key=place))


def refusals(job: Job, provider: Provider, capabilities: Iterable[Capability]) -> Iterator[tuple[Path, str]]:
    """The fields that the job sets and the provider refuses, with the reason."""
    refused = [capability for capability in capabilities if capability.support == "refused"]
    for path, value in _leaves((), asked_of(job, provider)):
        for capability in refused:
            name, equals, wanted = capability.field.partition("=")
            if _matches(name, path) and (not equals or str(value) == wanted):
                yield path[: len(name.split("."))], capability.how
    if job.spot.max_wait and not job.spot.enabled:
        yield ("spot", "max_wait"), "is a limit of spot capacity alone: set spot.enabled, or leave it out"


def shared_notes(job: Job, provider: Provider) -> Iterator[str]:
    """What is to be known whichever the provider is."""
    if job.checkpoint.uri is not None and job.checkpoint.uri_for(provider) is None:
        yield f"checkpoint.uri names no place for {provider}: checkpoints are kept beside the run"
    if homeless := [f"outputs.{name}" for name, uri in job.outputs_for(provider).items() if uri is None]:
        yield f"{', '.join(homeless)} names no place for {provider}: it is kept beside the run"
    if job.resources.instance is not None and job.resources.instance_for(provider) is None:
        kind = job.resources.accelerator or "a machine without accelerators, since resources.accelerator names none"
        yield f"resources.instance names no machine for {provider}: chosen from the catalogue for {kind}"


def client_notes(job: Job, provider: Provider, capabilities: Iterable[Capability]) -> Iterator[str]:
    """What the job sets and no one keeps yet; of the cost see ``unbounded_cost``."""
    client = [capability.field for capability in capabilities if capability.support == "client"]
    named = (".".join(map(str, path)) for path, _ in _leaves((), asked_of(job, provider)))
    if kept := [field for field in named if field in client and field != "limits.cost_usd"]:
        yield f"{', '.join(kept)}: not kept yet: {provider} has no such limit, and this cloudtrain does not act on it"


def unbounded_cost(job: Job) -> Iterator[str]:
    """Nobody may rely on a limit that is not kept."""
    if job.limits.cost_usd is not None:
        bound = "limits.runtime bounds it" if job.limits.runtime else "set limits.runtime, which is kept, to bound it"
        yield f"limits.cost_usd: nothing ends the run when it has cost {job.limits.cost_usd:g} USD; {bound}"


def _leaves(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves((*path, str(key)), item)
    else:
        yield path, value


def _matches(name: str, path: Path) -> bool:
    """Whether the path is the field or lies below it."""
    steps = name.split(".")
    return len(path) >= len(steps) and all(step in ("*", found) for step, found in zip(steps, path, strict=False))
