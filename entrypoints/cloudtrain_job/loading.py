"""``loader()``: exact shards of a map-style data set, resumable at any sample and at another world size."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator, Sequence, Sized
from typing import Any, Callable

import torch
from torch.utils.data import Dataset, IterableDataset

from cloudtrain_job.context import Context, current
from cloudtrain_job.errors import LoaderError, ResumeRefused
from cloudtrain_job.rng import derive
from cloudtrain_job.shares import Share, batches, share
from cloudtrain_job.workers import open_data, read

_FIXED = {
    "length": "samples in the data set",
    "global_batch": "global batch",
    "seed": "seed of the order",
    "shuffle": "shuffle",
    "drop_last": "drop_last",
    "order": "checksum of the order",
}


def loader(
    dataset: Dataset[Any],
    *,
    global_batch: int = 256,
    seed: int = 0,
    shuffle: bool = True,
    drop_last: bool = False,
    num_workers: int = 0,
    collate_fn: Callable[[list[Any]], Any] | None = None,
    worker_init_fn: Callable[[int], None] | None = None,
    pin_memory: bool | None = None,
    prefetch_factor: int | None = None,
    ctx: Context | None = None,
) -> Loader:
    """Batches of ``dataset`` for this rank: its part of global batches of ``global_batch`` samples.

    Args:
        dataset: map-style (``len()`` and ``[index]``). Streams are not supported yet.
        global_batch: samples per step over all ranks. What a rank gets is that divided by the world size; sizes differ
            by one where it does not divide. Keep it, and the learning rate, when the world size changes.
        seed: the order of epoch e is a permutation made from ``(seed, e)`` and nothing else.
        shuffle: False keeps the order of the data set.
        drop_last: leave out the last batch of an epoch if it is incomplete. By default it is kept, so that an epoch is
            every sample exactly once.
        num_workers, collate_fn, worker_init_fn, prefetch_factor: as in DataLoader. Workers live as long as the loader,
            and ignore SIGTERM and SIGINT, so that a stopped job can still finish its step and save.
        pin_memory: as in DataLoader; on by default where the device is a GPU.
        ctx: the Context, if not the one of ``init()``.

    Every rank makes the same number of steps. Multiply the mean loss by ``loader.weight`` before ``backward()``: the
    gradient is then that of the mean over the global batch. Where a last batch has fewer samples than there are ranks,
    a rank without one gets a copy of the batch's first sample, with weight 0, to take part in the step.

    Raises LoaderError for a data set without length, without samples, or smaller than a batch with ``drop_last``.
    """
    ctx = ctx or current()
    options = {
        "num_workers": num_workers,
        "collate_fn": collate_fn,
        "worker_init_fn": worker_init_fn,
        "pin_memory": ctx.device.type == "cuda" if pin_memory is None else pin_memory,
        "prefetch_factor": prefetch_factor,
    }
    return Loader(dataset, global_batch, seed, ctx, shuffle=shuffle, drop_last=drop_last, options=options)


class Loader:
    """What ``loader()`` makes. Iterating yields the batches that remain of the present epoch.

    ``epoch`` and ``consumed`` (samples of this epoch, over all ranks) are the position: they move when a batch is
    handed out, so between two steps they are what has been trained on, however far workers have read ahead. Leaving
    the loop early keeps the position. After the last batch the position stays at the end of the epoch until the next
    one is begun: a job stopped in the evaluation between the two finds no batch left when it resumes, and evaluates.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        global_batch: int,
        seed: int,
        ctx: Context,
        *,
        shuffle: bool,
        drop_last: bool,
        options: dict[str, Any],
    ) -> None:
        self.length = _length(dataset, global_batch, drop_last=drop_last)
        self.global_batch = global_batch
        self.seed = seed
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.epoch = 0
        self.consumed = 0
        self._ended = False
        self._rank, self._world = ctx.rank, ctx.world_size
        self._share = Share(0, 0, 1, self._world)
        self._plan = _Plan()
        self._random = torch.Generator()
        self._data = open_data(dataset, self._plan, random=self._random, **options)

    def __len__(self) -> int:
        """Steps of a whole epoch, the same on every rank."""
        return len(range(0, self.samples_per_epoch, self.global_batch))

    @property
    def samples_per_epoch(self) -> int:
        """Samples of an epoch over all ranks."""
        return self.length - self.length % self.global_batch if self.drop_last else self.length

    @property
    def samples(self) -> int:
        """Samples consumed so far over all ranks and epochs."""
        return self.epoch * self.samples_per_epoch + self.consumed

    @property
    def weight(self) -> float:
        """What to multiply this rank's mean loss with in the present step. See ``loader()``."""
        return self._share.weight

    @property
    def local_samples(self) -> int:
        """Samples of the present batch that count on this rank; 0 for a copy that only keeps it in step."""
        return self._share.count

    @property
    def batch_samples(self) -> int:
        """Samples of the present batch over all ranks."""
        return self._share.total

    def epochs(self, total: int) -> Iterator[int]:
        """The epochs left up to ``total``, starting with the present one: ``for epoch in loader.epochs(10)``."""
        self._go_on()
        while self.epoch < total:
            started = self.epoch
            yield started
            if self.epoch == started:
                self.set_epoch(started + 1)

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch."""
        self.epoch, self.consumed, self._ended = epoch, 0, False

    def _go_on(self) -> None:
        if self._ended:
            self.set_epoch(self.epoch + 1)

    def __iter__(self) -> Iterator[Any]:
        self._go_on()
        order = self._order(self.epoch)
        spans = list(batches(self.consumed, self.length, self.global_batch, drop_last=self.drop_last))
        self._plan.batches = [self._local(order, span) for span in spans]
        # Seeds of the workers; drawn from a generator of our own, so that reading data moves no other random stream.
        self._random.manual_seed(derive(self.seed, "workers", self.epoch, self.consumed, self._rank))
        for batch, (start, stop) in zip(read(self._data) if spans else (), spans):
            self._share = share(start, stop, self._rank, self._world)
            self.consumed = stop
            yield batch
        self._ended = True

    def state_dict(self) -> dict[str, Any]:
        """The position, and what it depends on."""
        return {"epoch": self.epoch, "consumed": self.consumed, **self._fixed()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go to a saved position. Raises ResumeRefused, with the difference, if it is one in other data."""
        self.check_state_dict(state)
        self.set_epoch(state["epoch"])
        self.consumed = state["consumed"]

    def check_state_dict(self, state: dict[str, Any]) -> None:
        """Raise ResumeRefused if ``state`` is a position in another data set, batch size or order."""
        now = self._fixed()
        changes = [
            f"{_FIXED[name]}: {state[name]} then, {now[name]} now" for name in _FIXED if state[name] != now[name]
        ]
        if len(changes) > 1 and state["order"] != now["order"]:
            changes.pop()  # follows from the others
        if changes:
            raise ResumeRefused(f"the checkpoint's place in the data is of no use here: {'; '.join(changes)}")

    def _fixed(self) -> dict[str, Any]:
        head = self._order(0)[:1024]  # enough to notice a torch that shuffles differently
        order = zlib.crc32(array("q", head.tolist()).tobytes())
        values = (self.length, self.global_batch, self.seed, self.shuffle, self.drop_last, order)
        return dict(zip(_FIXED, values))

    def _order(self, epoch: int) -> torch.Tensor:
        if not self.shuffle:
            return torch.arange(self.length)
        return torch.randperm(self.length, generator=torch.Generator().manual_seed(derive(self.seed, "order", epoch)))

    def _local(self, order: torch.Tensor, span: tuple[int, int]) -> list[int]:
        mine = share(*span, self._rank, self._world)
        stretch = order[mine.start : mine.stop] if mine.count else order[span[0] : span[0] + 1]
        indices: list[int] = stretch.tolist()
        return indices


class _Plan:
    """The index lists of the epoch under way, as a batch sampler: one object for life, so that workers live on."""

    def __init__(self) -> None:
        self.batches: Sequence[list[int]] = ()

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.batches)

    def __len__(self) -> int:
        return len(self.batches)


def _length(dataset: Dataset[Any], global_batch: int, *, drop_last: bool) -> int:
    if isinstance(dataset, IterableDataset) or not isinstance(dataset, Sized):
        raise LoaderError(f"loader() needs a map-style data set, with a length; {type(dataset).__name__} has none")
    length = len(dataset)
    if global_batch < 1:
        raise LoaderError(f"global_batch={global_batch}: a batch has at least one sample")
    if length < 1:
        raise LoaderError(f"the data set ({type(dataset).__name__}) is empty")
    if drop_last and length < global_batch:
        raise LoaderError(f"drop_last leaves nothing of {length} samples in batches of {global_batch}")
    return length
