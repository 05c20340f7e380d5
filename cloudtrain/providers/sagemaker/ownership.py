"""Overrides of what cloudtrain needs for itself: a run could not be found, started or continued without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.spec.problems import Path


def ownership_problems(job: Job) -> Iterator[tuple[Path, str]]:
    """The overrides that are refused, with what to do instead."""
    overrides, path = job.overrides.get("sagemaker", {}), ("overrides", "sagemaker")
    if "TrainingJobName" in overrides:
        yield (*path, "TrainingJobName"), "is made from name:, one for every attempt, and cannot be given"
    environment = overrides.get("Environment", {})
    if not isinstance(environment, Mapping):
        yield (*path, "Environment"), "must keep the variables that cloudtrain sets: give single ones"
        return
    for name in environment:
        if name.upper().startswith("CLOUDTRAIN_"):
            yield (*path, "Environment", name), "is set by cloudtrain and cannot be given"
