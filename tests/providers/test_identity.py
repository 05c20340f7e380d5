"""What a run is called: the same for what is asked for, whatever is said to others; another one for anything else."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cloudtrain.job import Job
from cloudtrain.providers import registry
from cloudtrain.providers.identity import LONGEST_NAME, native_name, run_id_of, shortened
from cloudtrain.settings import Settings
from tests.providers.contexts import ACCOUNTS, context, job_of

BASE: dict[str, Any] = {"name": "digits", "entry": "train.py"}


def run_id(
    provider: str = "sagemaker", digest: str = "c", settings: dict[str, str] | None = None, **fields: Any
) -> str:
    chosen = Settings(provider, {**ACCOUNTS[provider], **(settings or {})})
    return run_id_of(Job.model_validate({**BASE, **fields}), provider, chosen, digest)


def test_it_begins_with_the_jobs_name() -> None:
    assert re.fullmatch("digits-[0-9a-f]{10}", run_id())


@pytest.mark.parametrize(
    "fields",
    [
        {"overrides": {"vertex": {"displayName": "x"}}},
        {"resources": {"instance": {"vertex": "n1-standard-4"}}},
        {"environment": {"image": {"vertex": "a/b"}, "secrets": {"K": {"local": "env:K"}}}},
        {"checkpoint": {"uri": {"vertex": "gs://bucket/x"}}},
        {"outputs": {"report": {"local": "out"}}},
        {"version": 1, "code": ".", "retries": {"failure": 0}},  # what is so anyway
    ],
)
def test_what_is_said_to_others_is_no_matter(fields: dict[str, Any]) -> None:
    assert run_id(**fields) == run_id()


def test_a_value_for_all_is_the_same_as_one_for_this_cloud() -> None:
    uris = "s3://bucket/x/", {"sagemaker": "s3://bucket/x/", "local": "data"}
    first, second = (run_id(data={"train": {"uri": uri}}) for uri in uris)
    assert first == second


@pytest.mark.parametrize(
    "fields",
    [
        {"overrides": {"sagemaker": {"EnableNetworkIsolation": True}}},
        {"overrides": {"sagemaker": {"Tags": None}}},  # null takes a field out
        {"resources": {"nodes": 2}},
        {"resources": {"instance": {"sagemaker": "ml.m5.large"}}},
        {"args": {"lr": "0.1"}},
        {"environment": {"env": {"A": ""}}},
        {"environment": {"secrets": {"K": {"sagemaker": "k"}}}},
        {"outputs": {"report": "s3://bucket/r/"}},
        {"tags": {"team": "vision"}},
        {"spot": {"enabled": True}},
    ],
)
def test_anything_else_makes_another_run(fields: dict[str, Any]) -> None:
    assert run_id(**fields) != run_id()


def test_so_do_code_settings_and_provider() -> None:
    ids = [run_id(), run_id(digest="d"), run_id(settings={"bucket": "other"}), run_id("vertex"), run_id("azureml")]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("provider", ["sagemaker", "vertex", "azureml"])
def test_the_fingerprint_is_of_the_request_and_the_spec(provider: str) -> None:
    def mark(attempt: int = 1, **fields: Any) -> str:
        job = Job.model_validate({**BASE, **fields})
        native = str(registry.translate(job, context(job, provider, attempt=attempt)).native)
        (found,) = set(re.findall(r"FINGERPRINT', 'value': '([0-9a-f]{64})'|FINGERPRINT': '([0-9a-f]{64})'", native))
        return "".join(found)

    marks = [mark(), mark(2), mark(args=["x"]), mark(tags={"a": "b"})]  # arguments are in the spec alone
    assert len(set(marks)) == len(marks)
    assert mark() == marks[0]


def test_names_fit_every_service_and_stay_different() -> None:
    long = "n" * 60
    names = {native_name(f"{long}{end}", attempt) for end in ("a", "b") for attempt in (1, 1000)}
    assert len(names) == 4
    assert all(len(name) <= LONGEST_NAME and re.fullmatch("[a-z0-9](-*[a-z0-9])*", name) for name in names)


def test_a_short_name_is_left_alone_and_a_cut_leaves_no_hyphen_at_the_end() -> None:
    assert shortened("short", 10) == "short"
    assert re.fullmatch("a-[0-9a-f]{10}", shortened("a" + "-" * 30, 20))


def test_the_order_of_arguments_makes_another_run() -> None:
    one, two = (job_of(f"{{name: a, entry: a.py, args: {args}}}") for args in ("{a: 1, b: 2}", "{b: 2, a: 1}"))
    assert one.argv != two.argv
    assert context(one, "vertex").run_id != context(two, "vertex").run_id
