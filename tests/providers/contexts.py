"""Account settings and digests with which the tests translate jobs: fixed, so that requests are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cloudtrain.job import Job
from cloudtrain.providers.base import Context
from cloudtrain.providers.identity import code_digest, run_id_of
from cloudtrain.settings import Settings

PROVIDERS = ("sagemaker", "vertex", "azureml")

ACCOUNTS: Mapping[str, Mapping[str, str]] = {
    "sagemaker": {
        "region": "eu-west-1",
        "role": "arn:aws:iam::111122223333:role/SageMakerTraining",
        "bucket": "my-sagemaker-bucket",
    },
    "vertex": {
        "project": "my-project",
        "region": "europe-west4",
        "bucket": "my-vertex-bucket",
        "service_account": "trainer@my-project.iam.gserviceaccount.com",
    },
    "azureml": {
        "subscription": "11111111-2222-3333-4444-555555555555",
        "resource_group": "my-group",
        "workspace": "my-workspace",
    },
}
BUNDLE = "b" * 64
ENTRYPOINTS = "e" * 64


def context(job: Job, provider: str, *, attempt: int = 1, **settings: str) -> Context:
    """A context for ``job``; ``settings`` go over those of the test account."""
    chosen = Settings(provider, {**ACCOUNTS[provider], **settings})
    run_id = run_id_of(job, provider, chosen, code_digest(ENTRYPOINTS, BUNDLE))
    return Context(chosen, BUNDLE, ENTRYPOINTS, run_id, attempt)


def job_of(text: str) -> Job:
    """The job of a YAML text; no file need be there."""
    return Job.parse(text, Path("job.yaml"))
