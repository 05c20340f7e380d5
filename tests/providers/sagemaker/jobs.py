"""Jobs for the tests of this package, and what becomes of them."""

from __future__ import annotations

from typing import Any

import pytest

from cloudtrain.job import Job, merged
from cloudtrain.providers import registry
from cloudtrain.providers.base import Request
from cloudtrain.spec.problems import JobFileError
from tests.providers.contexts import context

CPU: dict[str, Any] = {"name": "digits", "entry": "train.py", "resources": {"instance": "ml.m5.xlarge"}}
GPU: dict[str, Any] = {
    "name": "digits",
    "entry": "train.py",
    "resources": {"nodes": 2, "accelerator": "A100-80GB", "accelerators_per_node": 8},
}


def request_of(base: dict[str, Any], settings: dict[str, str] | None = None, **changes: Any) -> Request:
    """The request of ``base`` with changes."""
    job = Job.model_validate(merged(base, changes))
    return registry.translate(job, context(job, "sagemaker", **(settings or {})))


def native_of(base: dict[str, Any], settings: dict[str, str] | None = None, **changes: Any) -> dict[str, Any]:
    """The request itself."""
    return request_of(base, settings, **changes).native


def refused(base: dict[str, Any], settings: dict[str, str] | None = None, **changes: Any) -> list[str]:
    """The problems for which ``base`` with changes is refused, ``key: message`` each."""
    with pytest.raises(JobFileError) as caught:
        request_of(base, settings, **changes)
    return [str(problem) for problem in caught.value.problems]


def found(native: dict[str, Any]) -> dict[str, str]:
    """Where the check of a request finds something, and what."""
    return {
        ".".join(map(str, problem.path)): problem.message for problem in registry.check("sagemaker", native).problems
    }
