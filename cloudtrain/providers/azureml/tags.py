"""Tags: the job's, and ours by which a run is found again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cloudtrain.providers.azureml.folders import OURS
from cloudtrain.providers.azureml.form import LONGEST_TAG_KEY, MOST_TAGS
from cloudtrain.providers.tags import run_tags, unusable_tags

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.base import Context
    from cloudtrain.spec.problems import Path


def tags_of(job: Job, context: Context) -> dict[str, str]:
    """The job's tags and ours."""
    return {**job.tags, **_ours(job, context)}


def tag_problems(job: Job, context: Context) -> Iterator[tuple[Path, str]]:
    """Tags beyond the service's limits."""
    return unusable_tags(job, _ours(job, context), OURS, MOST_TAGS, _flaws)


def _flaws(key: str, _: str) -> Iterator[str]:
    """Values are short enough for any service: the job file has a limit of its own."""
    if len(key) > LONGEST_TAG_KEY:
        yield f"its name has {len(key)} characters, at most {LONGEST_TAG_KEY}"


def _ours(job: Job, context: Context) -> dict[str, str]:
    """Nothing else in the request says which code the job has, and that one on a cluster is meant for low-priority."""
    run = {**run_tags(job, context, OURS), f"{OURS}code": context.code}
    return {**run, f"{OURS}spot": "true"} if job.spot.enabled else run
