"""Thousands of valid jobs: each passes the vendor's own schema, and rendering it twice gives equal bytes."""

from __future__ import annotations

import json
from random import Random

import pytest

from cloudtrain.job import Job
from cloudtrain.providers import registry
from tests.providers.contexts import PROVIDERS, context
from tests.providers.generate import jobs

NUMBER = 2000
VARIED = {
    "azureml": {"compute": "gpu-cluster"},
    "sagemaker": {"subnets": "subnet-1,subnet-2", "security_groups": "sg-1"},
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_valid_jobs_pass_the_native_checks(provider: str) -> None:
    random, seen = Random(7), set()
    for job in jobs(provider, NUMBER, seed=1):
        settings = VARIED.get(provider, {}) if random.random() < 0.3 else {}
        before = job.dump()
        request = registry.translate(job, context(job, provider, **settings))
        checked = registry.check(provider, request.native)
        assert not checked.problems, f"{job.dump()}\n{[str(problem) for problem in checked.problems]}"
        assert not checked.skipped
        again = registry.translate(Job.parse(before), context(job, provider, **settings))
        assert json.dumps(again) == json.dumps(request), before
        assert job.dump() == before
        seen.add(request.name)
    assert len(seen) == NUMBER
