"""Tags: the job's, and ours by which a run is found again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cloudtrain.providers.azureml.folders import OURS
from cloudtrain.providers.azureml.form import LONGEST_TAG_KEY, MOST_TAGS

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.base import Context
    from cloudtrain.spec.problems import Path


def tags_of(job: Job, context: Context) -> dict[str, str]:
    """The job's tags and ours."""
    return {**job.tags, **_ours(job, context)}


def tag_problems(job: Job, context: Context) -> Iterator[tuple[Path, str]]:
    """Tags beyond the service's limits."""
    for key in job.tags:  # the values are short enough for any service
        if key.lower().startswith(OURS):
            yield ("tags", key), f"begins with {OURS}, by which cloudtrain finds its runs; take another name"
        if len(key) > LONGEST_TAG_KEY:
            yield ("tags", key), f"its name has {len(key)} characters, at most {LONGEST_TAG_KEY}"
    if (ours := len(_ours(job, context))) + len(job.tags) > MOST_TAGS:
        yield ("tags",), f"{len(job.tags)} tags and {ours} of cloudtrain, at most {MOST_TAGS} in all"


def _ours(job: Job, context: Context) -> dict[str, str]:
    """Nothing else in the request says which code the job has, and that one on a cluster is meant for low-priority."""
    run = {
        f"{OURS}job": job.name,
        f"{OURS}run": context.run_id,
        f"{OURS}attempt": str(context.attempt),
        f"{OURS}code": context.code,
    }
    return {**run, f"{OURS}spot": "true"} if job.spot.enabled else run
