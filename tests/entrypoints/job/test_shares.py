"""Who takes which samples: laws that hold for any numbers."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from cloudtrain_job.shares import batches, share

counts = st.integers(1, 500)


@given(start=st.integers(0, 1000), total=counts, world=st.integers(1, 40))
def test_shares_are_a_partition_as_even_as_can_be(start: int, total: int, world: int) -> None:
    shares = [share(start, start + total, rank, world) for rank in range(world)]
    assert [index for each in shares for index in range(each.start, each.stop)] == list(range(start, start + total))
    sizes = [each.count for each in shares]
    assert max(sizes) - min(sizes) <= 1
    assert sizes[0] >= 1  # whose buffers are the ones that count


@given(total=counts, world=st.integers(1, 40))
def test_the_average_over_ranks_of_weighted_means_is_the_mean(total: int, world: int) -> None:
    shares = [share(0, total, rank, world) for rank in range(world)]
    values = [Fraction(index * index) for index in range(total)]
    means = [sum(values[each.start : each.stop], Fraction()) / max(each.count, 1) for each in shares]
    weights = [Fraction(each.count * world, total) for each in shares]
    average = sum((mean * weight for mean, weight in zip(means, weights, strict=True)), Fraction()) / world
    assert average == sum(values, Fraction()) / total
    assert [each.weight for each in shares] == [float(weight) for weight in weights]


@given(length=counts, batch=counts, drop_last=st.booleans(), data=st.data())
def test_batches_go_on_where_they_stopped(length: int, batch: int, drop_last: bool, data: st.DataObject) -> None:
    whole = list(batches(0, length, batch, drop_last=drop_last))
    covered = [index for start, stop in whole for index in range(start, stop)]
    assert covered == list(range(length - length % batch if drop_last else length))
    done = data.draw(st.integers(0, len(whole)))
    consumed = whole[done - 1][1] if done else 0
    assert list(batches(consumed, length, batch, drop_last=drop_last)) == whole[done:]
