"""One data-parallel job file, trained on simulated nodes the way a cloud would start it.

    import cloudtrain as ct

    job = ct.Job.load("job.yaml")
    run = ct.run(job, nodes=2, processes=2)
    print(run.status().state, run.folder)

Names are loaded on first use, so that ``import cloudtrain`` costs a few milliseconds and no dependency.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudtrain.errors import CloudtrainError, JobFailed, MissingError, SpecError
    from cloudtrain.job import Job
    from cloudtrain.providers.base import Request
    from cloudtrain.record.observer import Observer
    from cloudtrain.rendering.request import render
    from cloudtrain.runs.run import Run, RunStatus
    from cloudtrain.sdk import run, submit

_HOME = {
    "CloudtrainError": "cloudtrain.errors",
    "Job": "cloudtrain.job",
    "JobFailed": "cloudtrain.errors",
    "MissingError": "cloudtrain.errors",
    "Observer": "cloudtrain.record.observer",
    "Run": "cloudtrain.runs.run",
    "RunStatus": "cloudtrain.runs.run",
    "SpecError": "cloudtrain.errors",
    "Request": "cloudtrain.providers.base",
    "render": "cloudtrain.rendering.request",
    "run": "cloudtrain.sdk",
    "submit": "cloudtrain.sdk",
}

__all__ = [
    "CloudtrainError",
    "Job",
    "JobFailed",
    "MissingError",
    "Observer",
    "Request",
    "Run",
    "RunStatus",
    "SpecError",
    "render",
    "run",
    "submit",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("importlib.metadata").version("cloudtrain")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'cloudtrain' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
