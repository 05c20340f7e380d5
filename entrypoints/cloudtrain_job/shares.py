"""Who takes which samples: pure arithmetic, the same on every rank.

An epoch is one order of the whole data set. Its global batch k is ``order[k*G : (k+1)*G]`` whatever the world size; a
rank takes one stretch of that. So the model sees the same batches on 1 process or 100, and the place in the data is
one number, the samples consumed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """One rank's part ``[start, stop)`` of a global batch of ``total`` samples, both counted in the epoch's order."""

    start: int
    stop: int
    total: int
    world: int

    @property
    def count(self) -> int:
        """Samples this rank takes; 0 where the batch has fewer samples than there are ranks."""
        return self.stop - self.start

    @property
    def weight(self) -> float:
        """What this rank's mean loss counts for, so that DDP's average over ranks is the mean over the batch.

        DDP divides the sum of gradients by the world size. ``sum(mean_r * weight_r) / world`` is the mean over all
        samples when ``weight_r = count_r * world / total``. Exactly 1.0 where all ranks take equally many.
        """
        return self.count * self.world / self.total


def batches(consumed: int, length: int, batch: int, *, drop_last: bool) -> Iterator[tuple[int, int]]:
    """The global batches ``(start, stop)`` that remain of an epoch of ``length`` samples, ``consumed`` being done."""
    end = length - length % batch if drop_last else length
    for start in range(consumed, end, batch):
        yield start, min(start + batch, end)


def share(start: int, stop: int, rank: int, world: int) -> Share:
    """The part of rank ``rank``. Sizes differ by at most one, the lower ranks taking the larger parts."""
    total = stop - start
    size, spare = divmod(total, world)
    first = start + rank * size + min(rank, spare)
    return Share(first, first + size + (rank < spare), total, world)
