"""A secret's value where its name is meant: a name may be any word, so what looks like a key is refused, unshown."""

from __future__ import annotations

import pytest

from cloudtrain.job import Job
from cloudtrain.providers import registry
from cloudtrain.spec.problems import JobFileError
from tests.providers.contexts import PROVIDERS, context

KEYS = [
    "0123456789abcdef0123456789abcdef01234567",  # Weights & Biases: forty hexadecimal digits
    "hf_" + "A1b2C3d4" * 4,
    "sk-proj-" + "A1b2C3d4" * 4,
    "ghp_" + "A1b2C3d4" * 4,
    "AKIA" + "ABCDEFGHIJKL2345",
]


def translated(provider: str, reference: str) -> None:
    job = Job.model_validate({"name": "j", "entry": "t.py", "environment": {"secrets": {"KEY": {provider: reference}}}})
    registry.translate(job, context(job, provider))


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_not_taken_for_a_name(key: str, provider: str) -> None:
    with pytest.raises(JobFileError, match="looks like the secret itself") as caught:
        translated(provider, key)
    assert key not in str(caught.value)


@pytest.mark.parametrize("provider", ["sagemaker", "vertex"])
@pytest.mark.parametrize("name", ["wandb", "WANDB_API_KEY", "team-hf_token", "sk-learn", "deadbeef"])
def test_names_are_names(name: str, provider: str) -> None:
    translated(provider, name)
