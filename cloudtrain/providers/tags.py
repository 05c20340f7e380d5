"""Tags and labels: the job's, and ours by which a run is found again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.base import Context
    from cloudtrain.spec.problems import Path


def run_tags(job: Job, context: Context, prefix: str) -> dict[str, str]:
    """Ours. ``prefix`` is of the alphabet that the provider allows."""
    found = {"job": job.name, "run": context.run_id, "attempt": str(context.attempt)}
    return {f"{prefix}{name}": value for name, value in found.items()}


def unusable_tags(
    job: Job, ours: Mapping[str, str], prefix: str, most: int, flaws_of: Callable[[str, str], Iterable[str]]
) -> Iterator[tuple[Path, str]]:
    """Tags that the provider refuses, that look like ours, or that are too many."""
    for key, value in job.tags.items():
        for flaw in flaws_of(key, value):
            yield ("tags", key), flaw
        if key.lower().startswith(prefix):
            yield ("tags", key), f"begins with {prefix}, by which cloudtrain finds its runs; take another name"
    if len(job.tags) + len(ours) > most:
        yield ("tags",), f"{len(job.tags)} tags and {len(ours)} of cloudtrain's own, at most {most} in all"
