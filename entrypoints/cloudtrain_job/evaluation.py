"""Evaluation that counts every sample exactly once, at any world size."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Protocol

import torch
from torch import nn
from torch.utils.data import Dataset

from cloudtrain_job.context import Context, current
from cloudtrain_job.errors import LoaderError
from cloudtrain_job.rng import derive
from cloudtrain_job.unwrap import unwrap
from cloudtrain_job.workers import open_data, read

if TYPE_CHECKING:
    from cloudtrain_job.checkpoint import Checkpointer

Measure = Callable[[nn.Module, Any], Mapping[str, Any]]


class _HasLength(Protocol):
    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Evaluation:
    """What came out: ``sums`` over all ``samples``, per quantity."""

    samples: int
    sums: Mapping[str, float]

    @property
    def means(self) -> dict[str, float]:
        """Per quantity: its sum over the number of samples."""
        return {name: value / self.samples for name, value in self.sums.items()}


def evaluate(
    model: nn.Module,
    dataset: Dataset[Any],
    measure: Measure,
    *,
    batch_size: int = 256,
    num_workers: int = 0,
    collate_fn: Callable[[list[Any]], Any] | None = None,
    state: Checkpointer | None = None,
    ctx: Context | None = None,
) -> Evaluation:
    """Measure ``model`` on all of ``dataset``; the same result on every rank.

    ``measure(model, batch)`` gets the bare model in eval mode, without gradients, and a batch on the rank's device. It
    returns **sums over the samples of the batch**: ``{"accuracy": (out.argmax(1) == y).sum()}``. Rank r takes samples
    r, r + world, ...: nothing is padded, no sample counts twice, and the sums are added over the ranks in double
    precision. ``batch_size`` is per rank. All ranks must call it. With ``state``, a SIGTERM meanwhile ends the job
    after an agreed save, as in training.

    Raises LoaderError for a data set that is empty or has no length.
    """
    ctx = ctx or current()
    if not hasattr(dataset, "__len__") or len(dataset) == 0:
        raise LoaderError(f"evaluate() needs a data set with samples and a length, not {type(dataset).__name__}")
    plan = _Rounds(dataset, batch_size, ctx)
    random = torch.Generator().manual_seed(derive("evaluation", ctx.rank))
    data = open_data(
        dataset,
        plan,
        num_workers=min(num_workers, len(plan)),
        random=random,
        pin_memory=ctx.device.type == "cuda",
        collate_fn=collate_fn,
    )
    mine: dict[str, float] = {}
    with _evaluating(unwrap(model)) as bare:
        for batch in _rounds(plan, data, state):
            for name, value in measure(bare, ctx.to_device(batch)).items():
                mine[name] = mine.get(name, 0.0) + float(value)
    return _collect(ctx.gather((plan.samples, mine)))


class _Rounds:
    """This rank's index lists. Ranks may differ by one batch, but all go through ``rounds`` rounds."""

    def __init__(self, dataset: _HasLength, batch_size: int, ctx: Context) -> None:
        mine = range(ctx.rank, len(dataset), ctx.world_size)
        self.samples = len(mine)
        self.rounds = -(-len(range(0, len(dataset), ctx.world_size)) // batch_size)
        self._batches = [list(mine[start : start + batch_size]) for start in range(0, len(mine), batch_size)]

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self._batches)

    def __len__(self) -> int:
        return len(self._batches)


def _rounds(plan: _Rounds, data: Any, state: Checkpointer | None) -> Iterator[Any]:
    batches = read(data) if len(plan) else iter(())
    for _ in range(plan.rounds):
        if state is not None:
            state.check()
        yield from itertools.islice(batches, 1)


@contextlib.contextmanager
def _evaluating(model: nn.Module) -> Iterator[nn.Module]:
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.no_grad():
            yield model
    finally:
        for module in training:
            module.training = True


def _collect(parts: list[tuple[int, dict[str, float]]]) -> Evaluation:
    sums: dict[str, float] = {}
    for _, mine in parts:
        for name, value in mine.items():
            sums[name] = sums.get(name, 0.0) + value
    return Evaluation(samples=sum(samples for samples, _ in parts), sums=sums)
