"""The loader, on the ranks of made-up worlds: it needs no process group, only to be told its rank."""

from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import Dataset, IterableDataset

import cloudtrain_job as ctj


class Numbers(Dataset[int]):
    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> int:
        return index


@pytest.fixture(scope="module", autouse=True)
def _alone() -> Iterator[None]:
    hidden = pytest.MonkeyPatch()
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        hidden.delenv(name, raising=False)
    ctj.init()
    yield
    ctj.finish()
    hidden.undo()


def loaders(world: int, length: int, **options: Any) -> list[ctj.Loader]:
    """The loaders of all ranks of a world."""
    here = ctj.current()
    places = [dataclasses.replace(here, rank=rank, world_size=world) for rank in range(world)]
    return [ctj.loader(Numbers(length), ctx=place, **options) for place in places]


def step(all_ranks: list[Iterator[torch.Tensor]], ranks: list[ctj.Loader]) -> tuple[list[int], list[int]] | None:
    """What counts of the next step of all ranks, and how many samples each got; None at the end of the epoch."""
    batches = [next(iterator, None) for iterator in all_ranks]
    if batches[0] is None:
        assert batches == [None] * len(batches), "ranks differ in their number of steps"
        return None
    counts = [rank.local_samples for rank in ranks]
    seen = [
        number
        for batch, count in zip(batches, counts, strict=True)
        if batch is not None
        for number in batch[:count].tolist()
    ]
    assert sum(rank.weight for rank in ranks) == pytest.approx(len(ranks))
    assert {rank.batch_samples for rank in ranks} == {len(seen)}
    return seen, counts


@settings(deadline=None, max_examples=60)
@given(
    length=st.integers(1, 60),
    batch=st.integers(1, 20),
    worlds=st.lists(st.tuples(st.integers(1, 6), st.integers(0, 5)), min_size=1, max_size=4),
    shuffle=st.booleans(),
)
def test_through_any_resumes_at_any_world_sizes_an_epoch_is_every_sample_once(
    length: int, batch: int, worlds: list[tuple[int, int]], shuffle: bool
) -> None:
    options = {"global_batch": batch, "seed": 5, "shuffle": shuffle}
    (alone,) = loaders(1, length, **options)
    reference = [numbers.tolist() for numbers in alone]
    state, steps = None, []
    for index, (world, stay) in enumerate(worlds):
        ranks = loaders(world, length, **options)
        for rank in ranks:
            if state is not None:
                rank.load_state_dict(state)
        iterators = [iter(rank) for rank in ranks]
        last = index == len(worlds) - 1
        while last or stay > 0:
            stay -= 1
            found = step(iterators, ranks)
            if found is None:
                break
            steps.append(found[0])
        state = ranks[0].state_dict()
        assert all(rank.state_dict() == state for rank in ranks)
    assert steps == reference
    assert sorted(number for numbers in steps for number in numbers) == list(range(length))


def test_orders_differ_between_epochs_and_between_seeds() -> None:
    # Were the order made of seed + epoch, epoch 1 of seed 0 would be epoch 0 of seed 1.
    (first,), (second,) = loaders(1, 50, seed=0), loaders(1, 50, seed=1)
    orders = [tuple(batch.tolist()) for loader in (first, second) for _ in loader.epochs(2) for batch in loader]
    assert len(set(orders)) == 4


def test_shares_of_a_last_batch_smaller_than_the_world() -> None:
    ranks = loaders(4, 10, global_batch=8)
    iterators = [iter(rank) for rank in ranks]
    counts = [found[1] for found in iter(lambda: step(iterators, ranks), None)]
    assert counts == [[2, 2, 2, 2], [1, 1, 0, 0]]
    assert [rank.weight for rank in ranks] == [2.0, 2.0, 0.0, 0.0]


def test_drop_last_leaves_out_the_rest() -> None:
    (loader,) = loaders(1, 10, global_batch=4, drop_last=True)
    assert [len(batch) for batch in loader] == [4, 4]
    assert (len(loader), loader.samples_per_epoch) == (2, 8)


def test_leaving_an_epoch_early_and_coming_back() -> None:
    (loader,) = loaders(1, 12, global_batch=4, shuffle=False)
    next(iter(loader))
    assert [batch.tolist() for batch in loader] == [[4, 5, 6, 7], [8, 9, 10, 11]]
    assert (loader.epoch, loader.consumed, loader.samples) == (0, 12, 12)
    next(iter(loader))
    assert (loader.epoch, loader.consumed, loader.samples) == (1, 4, 16)


def test_epochs_end_when_the_next_begins() -> None:
    (loader,) = loaders(1, 4, global_batch=4)
    seen = []
    for epoch in loader.epochs(2):
        batches = list(loader)
        seen.append((epoch, len(batches), loader.state_dict()["epoch"], loader.state_dict()["consumed"]))
    assert seen == [(0, 1, 0, 4), (1, 1, 1, 4)]
    assert (loader.epoch, loader.consumed) == (2, 0)
    assert list(loader.epochs(2)) == []


def test_workers_read_the_same_and_live_through_epochs() -> None:
    (plain,), (ahead,) = loaders(1, 30, global_batch=7), loaders(1, 30, global_batch=7, num_workers=2)
    for _ in range(2):
        assert [batch.tolist() for batch in ahead] == [batch.tolist() for batch in plain]


def test_reading_data_moves_no_random_stream() -> None:
    (loader,) = loaders(1, 20, global_batch=4)
    before = torch.get_rng_state()
    list(loader)
    assert torch.equal(torch.get_rng_state(), before)


class SignalsItsWorker(Numbers):
    def __getitem__(self, index: int) -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), number)
        return index


def test_workers_outlive_sigterm_and_sigint() -> None:
    loader = ctj.loader(SignalsItsWorker(8), global_batch=4, shuffle=False, num_workers=2)
    assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(3))


@pytest.mark.parametrize(
    ("dataset", "options", "message"),
    [
        (Stream(), {}, "needs a map-style data set, with a length; Stream has none"),
        (Numbers(0), {}, r"the data set \(Numbers\) is empty"),
        (Numbers(5), {"global_batch": 0}, "global_batch=0"),
        (Numbers(5), {"global_batch": 6, "drop_last": True}, "drop_last leaves nothing of 5 samples in batches of 6"),
    ],
)
def test_what_cannot_be_shared_out_is_refused(dataset: Dataset[int], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ctj.LoaderError, match=message):
        ctj.loader(dataset, **options)


def test_a_position_in_other_data_is_refused_with_all_differences() -> None:
    (one,), (other,) = loaders(1, 10, global_batch=2), loaders(1, 11, global_batch=3)
    with pytest.raises(
        ctj.ResumeRefused, match=r"samples in the data set: 10 then, 11 now; global batch: 2 then, 3 now$"
    ):
        other.load_state_dict(one.state_dict())
