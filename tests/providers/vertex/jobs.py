"""Jobs for Vertex AI, their requests, and what is wrong with those that have none."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import pytest

from cloudtrain.job import Job
from cloudtrain.providers import registry
from cloudtrain.providers.base import Request
from cloudtrain.spec.problems import JobFileError
from tests.local.project import require
from tests.providers.contexts import context

IMAGE = "europe-west4-docker.pkg.dev/my-project/images/train:1"
CPU: dict[str, Any] = {"name": "digits", "entry": "train.py", "environment": {"image": IMAGE}}
GPU: dict[str, Any] = {**CPU, "resources": {"nodes": 3, "accelerator": "A100-80GB", "accelerators_per_node": 8}}


def job(base: dict[str, Any], **changes: Any) -> Job:
    """``base`` with sections merged into it."""
    return Job(**base).with_(**changes)


def requested(base: dict[str, Any], settings: dict[str, str] | None = None, **changes: Any) -> Request:
    """The request of a job that Vertex AI can do."""
    made = job(base, **changes)
    return registry.translate(made, context(made, "vertex", **(settings or {})))


def refused(base: dict[str, Any], **changes: Any) -> list[str]:
    """All reasons for which Vertex AI cannot do a job."""
    made = job(base, **changes)
    with pytest.raises(JobFileError) as error:
        registry.translate(made, context(made, "vertex"))
    return [str(problem) for problem in error.value.problems]


def pools(request: Request) -> list[dict[str, Any]]:
    """The worker pools."""
    found: list[dict[str, Any]] = request.native["jobSpec"]["workerPoolSpecs"]
    return found


def variables(request: Request, pool: int = 0) -> dict[str, str]:
    """The container's variables, as they stand in the request."""
    return {item["name"]: item["value"] for item in pools(request)[pool]["containerSpec"]["env"]}


def google_types() -> Any:
    """Google's own types of custom jobs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python versions near their end
        try:
            return importlib.import_module("google.cloud.aiplatform_v1.types")
        except ModuleNotFoundError:
            require(False, "google-cloud-aiplatform is not installed")
