"""``init()``: who this process is, which device is its own, how it talks to the others, where it reads and writes."""

from __future__ import annotations

import atexit
import datetime
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloudtrain_job.errors import JobError, WorldError
from cloudtrain_job.folders import Folders, read_places
from cloudtrain_job.world import World, read_world

if TYPE_CHECKING:
    import torch

_current: Context | None = None
_owns_group = False


@dataclass(frozen=True)
class Context:
    """One process of a job. Made by ``init()``.

    ``grace`` is the time in seconds between SIGTERM and SIGKILL. ``data`` and ``outputs`` are folders by the names
    the job file gives them. All paths are absolute; the job's own folders are made when first written to.
    """

    rank: int
    local_rank: int
    world_size: int
    local_world_size: int
    node: int
    nodes: int
    hosts: tuple[str, ...]
    device: torch.device
    seed: int
    run_id: str
    attempt: int
    provider: str
    grace: float
    data: Folders
    outputs: Folders
    checkpoint_dir: Path
    output_dir: Path
    model_dir: Path
    metrics_dir: Path

    @property
    def is_main(self) -> bool:
        """True on rank 0, which alone writes what is the same on all ranks."""
        return self.rank == 0

    def wrap(self, model: torch.nn.Module, **ddp: Any) -> torch.nn.Module:
        """``model`` on this rank's device, in DistributedDataParallel (with ``ddp`` options) where there are peers.

        From here on each rank has its own random stream, so that dropout differs between ranks; before, all ranks
        draw the same numbers and so build the same model.
        """
        from torch.nn.parallel import DistributedDataParallel

        from cloudtrain_job.rng import derive, seed_all

        model = model.to(self.device)
        if self.world_size > 1:
            ids = [self.device.index] if self.device.type == "cuda" else None
            model = DistributedDataParallel(model, **{"device_ids": ids, "gradient_as_bucket_view": True, **ddp})
        seed_all(derive(self.seed, "rank", self.rank))
        return model

    def to_device(self, batch: Any) -> Any:
        """``batch`` with every tensor in it on this rank's device; tuples, lists and dicts are gone through."""
        if hasattr(batch, "to"):
            return batch.to(self.device, non_blocking=True)
        if isinstance(batch, tuple) and hasattr(batch, "_fields"):
            return type(batch)(*(self.to_device(part) for part in batch))
        if isinstance(batch, (tuple, list)):
            return type(batch)(self.to_device(part) for part in batch)
        if isinstance(batch, Mapping):
            return {name: self.to_device(part) for name, part in batch.items()}
        return batch

    def any(self, *flags: bool) -> tuple[bool, ...]:
        """Per flag: is it set on any rank? All ranks must call it, and all get the same answer."""
        if self.world_size == 1:
            return flags
        return tuple(value > 0 for value in self._reduce([float(flag) for flag in flags], "MAX"))

    def sum(self, *values: float) -> tuple[float, ...]:
        """Per value: the sum over all ranks, in double precision. All ranks must call it."""
        if self.world_size == 1:
            return values
        return tuple(self._reduce(values, "SUM"))

    def gather(self, value: Any) -> list[Any]:
        """``value`` of every rank, in order of rank, on every rank. All ranks must call it."""
        if self.world_size == 1:
            return [value]
        from cloudtrain_job import collectives

        return collectives.gather(value, self.world_size)

    def broadcast(self, value: Any) -> Any:
        """Rank 0's ``value``, on every rank. All ranks must call it."""
        return self.gather(value if self.is_main else None)[0]

    def say(self, text: str) -> None:
        """One line on stderr, from rank 0 only."""
        if self.is_main:
            sys.stderr.write(f"cloudtrain: {text}\n")
            sys.stderr.flush()

    def _reduce(self, values: Sequence[float], how: str) -> list[float]:
        from cloudtrain_job import collectives

        return collectives.reduce(values, how, self.device)


def init(*, seed: int = 0, device: str | None = None, timeout: float | datetime.timedelta | None = None) -> Context:
    """Join the job: read torchrun's variables, take a device, make the process group, seed everything.

    ``device`` is ``cuda:LOCAL_RANK`` where CUDA is there and visible, else the CPU; ``"cpu"`` forces the latter.
    ``timeout`` (seconds) bounds how long a collective waits for a peer; torch's default is 30 min for gloo and 10 min
    for NCCL. ``seed`` is set equally on all ranks, so that they build equal models; ``Context.wrap`` then gives each
    rank its own stream. A process group that exists already is used and left alone. Calling it again gives the same
    Context.

    Raises WorldError for a half-set environment, and for a rank that has no GPU of its own.
    """
    global _current  # noqa: PLW0603  a process has one place in one world
    if _current is None:
        world = read_world(os.environ)
        _current = _context(world, _device(world, device), seed)
        _join(world, _current.device, timeout)
        from cloudtrain_job.rng import seed_all

        seed_all(seed)
    return _current


def current() -> Context:
    """The Context of this process. Raises JobError before ``init()``."""
    if _current is None:
        raise JobError("call cloudtrain_job.init() first")
    return _current


def finish() -> None:
    """Leave the process group. Called at exit as well; calling it twice does no harm."""
    global _current, _owns_group
    if _owns_group:
        from cloudtrain_job import collectives

        collectives.leave()
    _current, _owns_group = None, False


def _at_exit() -> None:
    # After an error, NCCL may wait here for collectives that no peer will join; the end of the process frees all.
    if _current is not None and not (_current.device.type == "cuda" and getattr(sys, "last_value", None)):
        finish()


def _context(world: World, device: torch.device, seed: int) -> Context:
    places = read_places(os.environ)
    return Context(
        rank=world.rank,
        local_rank=world.local_rank,
        world_size=world.size,
        local_world_size=world.local_size,
        node=world.node,
        nodes=world.nodes,
        hosts=world.hosts,
        device=device,
        seed=seed,
        run_id=os.environ.get("CLOUDTRAIN_RUN_ID", ""),
        attempt=int(_number("CLOUDTRAIN_ATTEMPT", 0)),
        provider=os.environ.get("CLOUDTRAIN_PROVIDER", ""),
        grace=_number("CLOUDTRAIN_GRACE", 30.0),
        data=places.data,
        outputs=places.outputs,
        checkpoint_dir=places.checkpoints,
        output_dir=places.output,
        model_dir=places.model,
        metrics_dir=places.metrics,
    )


def _number(variable: str, default: float) -> float:
    text = os.environ.get(variable) or str(default)
    try:
        return float(text)
    except ValueError:
        raise WorldError(f"{variable}={text!r} in the environment is not a number") from None


def _device(world: World, wanted: str | None) -> torch.device:
    import torch

    if wanted is not None and not wanted.startswith("cuda"):
        return torch.device(wanted)
    if not torch.cuda.is_available():
        if wanted is not None:
            raise WorldError(f"init(device={wanted!r}): torch {torch.__version__} finds no CUDA device here")
        return torch.device("cpu")
    seen = torch.cuda.device_count()
    device = torch.device(wanted if wanted and ":" in wanted else f"cuda:{world.local_rank}")
    if device.index >= seen:
        raise WorldError(
            f"rank {world.rank} would use {device}, but sees {seen} GPU(s): start at most one process per GPU, "
            "or hide the GPUs (CUDA_VISIBLE_DEVICES=) to train on the CPU"
        )
    torch.cuda.set_device(device)
    return device


def _join(world: World, device: torch.device, timeout: float | datetime.timedelta | None) -> None:
    import torch.distributed as dist

    global _owns_group  # noqa: PLW0603
    if dist.is_initialized():
        return
    options: dict[str, Any] = {} if timeout is None else {"timeout": _delta(timeout)}
    if world.alone:
        options.update(store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[attr-defined]
    # With both backends, small values are agreed on by CPU tensors without waiting for the GPU.
    dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo", **options)
    _owns_group = True
    atexit.register(_at_exit)


def _delta(timeout: float | datetime.timedelta) -> datetime.timedelta:
    return timeout if isinstance(timeout, datetime.timedelta) else datetime.timedelta(seconds=timeout)
