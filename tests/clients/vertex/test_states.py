"""What a job's description comes to: states, causes, times. Pure."""

from __future__ import annotations

from typing import Any

import pytest

from cloudtrain.providers.port import Cause, Description
from cloudtrain.providers.vertex.states import described
from cloudtrain.record.state import State
from tests.clients.vertex.service import custom_job

NOW = 1_796_033_800.0
"""2026-11-30T10:16:40Z"""
NAME = "projects/123456789/locations/europe-west4/customJobs/4711"


def seen(
    state: str, message: str = "", *, code: int = 3, spot: bool = False, said: str = "", **changes: Any
) -> Description:
    """A job that ran from 10:01 to 10:11, of at most an hour."""
    job = {
        "name": NAME,
        "displayName": "digits-3f9c2b71aa-a1",
        "state": f"JOB_STATE_{state}",
        "jobSpec": {"scheduling": {"timeout": "3600s", **({"strategy": "SPOT"} if spot else {})}},
        "createTime": "2026-11-30T10:00:00Z",
        "startTime": "2026-11-30T10:01:00Z",
        "endTime": "2026-11-30T10:11:00Z",
        **({"error": {"code": code, "message": message}} if message else {}),
        **changes,
    }
    return described({name: value for name, value in job.items() if value is not None}, "my-project", NOW, said)


def test_every_state_of_the_vendor_has_one_of_ours() -> None:
    """By Google's own list, for a job that has run before. What becomes of PAUSED is not known: it goes on."""
    words = [
        name.removeprefix("JOB_STATE_")
        for name in custom_job().DESCRIPTOR.fields_by_name["state"].enum_type.values_by_name
    ]
    assert {word: seen(word).state.value for word in words} == {
        "UNSPECIFIED": "UNKNOWN",
        "QUEUED": "RESTARTING",
        "PENDING": "RESTARTING",
        "RUNNING": "RUNNING",
        "SUCCEEDED": "SUCCEEDED",
        "FAILED": "FAILED",
        "CANCELLING": "STOPPING",
        "CANCELLED": "STOPPED",
        "PAUSED": "UNKNOWN",
        "EXPIRED": "FAILED",
        "UPDATING": "RUNNING",
        "PARTIALLY_SUCCEEDED": "FAILED",
    }


def test_before_it_has_run_for_the_first_time() -> None:
    assert seen("QUEUED", startTime=None).state is State.PENDING
    assert seen("PENDING", startTime=None).state is State.PROVISIONING


# The words of the first five are those of Google's page on the training service.
@pytest.mark.parametrize(
    ("message", "code", "cause"),
    [
        ("The replica workerpool0-0 exited with a non-zero status of 1. Termination reason: Error.", 3, "user-code"),
        ("The replica workerpool1-3 ran out of memory and exited with a non-zero status of 137.", 3, "user-code"),
        ("Resources are insufficient in region: us-central1. Try a different region or use a different accelerator.", 8,
         "capacity"),
        ("Internal error occurred for the current attempt", 13, "infrastructure"),
        ("The following quota metrics exceed quota limits: aiplatform.googleapis.com/custom_model_training_cpus", 8,
         "quota"),
        ("The replica workerpool0-0 exited with a non-zero status of 128. Termination reason: StartError.", 3, "image"),
        ('Failed to pull image "europe-docker.pkg.dev/p/r/i:1": not found', 5, "image"),
        ("Permission denied while accessing the output.", 7, "permission"),
        ("something else", 7, "permission"),
        ("something else", 13, "infrastructure"),
        ("something else", 99, ""),
        ("The node of replica workerpool1-0 was lost.", 14, "node-lost"),
    ],
)  # fmt: skip
def test_why_a_job_failed(message: str, code: int, cause: Cause) -> None:
    found = seen("FAILED", message, code=code)
    assert (found.state, found.cause, found.reason) == (State.FAILED, cause, message)


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED", "EXPIRED"])
def test_a_job_whose_time_is_over(state: str) -> None:
    """The documentation does not say which state and message that gives: it ended when its time was over."""
    late = seen(state, endTime="2026-11-30T11:01:00.25Z")
    assert (late.state, late.cause, late.reason) == (State.TIMED_OUT, "timeout", "its time was over: 3600s")
    assert seen(state, "x", endTime="2026-11-30T11:00:59Z").state is not State.TIMED_OUT
    assert seen("SUCCEEDED", endTime="2026-11-30T11:01:00Z").state is State.SUCCEEDED


def test_the_message_says_that_time_is_over() -> None:
    assert seen("CANCELLED", "The job was cancelled because it exceeded its timeout.").state is State.TIMED_OUT


def test_preempted() -> None:
    stockout = "Resources are insufficient in region: us-central1."
    assert seen("FAILED", "The VM was preempted too often.").state is State.PREEMPTED
    assert seen("FAILED", stockout, spot=True).state is State.PREEMPTED
    waited = seen("FAILED", stockout, spot=True, endTime="2026-11-30T20:00:00Z")  # between its starts
    assert (waited.state, waited.cause) == (State.PREEMPTED, "preempted")
    never = seen("FAILED", stockout, spot=True, startTime=None)
    assert (never.state, never.cause) == (State.FAILED, "capacity")
    assert seen("FAILED", stockout).state is State.FAILED


def test_what_it_waited_for_did_not_come() -> None:
    assert seen("EXPIRED", startTime=None).cause == "capacity"


def test_a_failure_is_not_settled_until_the_service_says_why() -> None:
    just_now = seen("FAILED", endTime="2026-11-30T10:16:00Z")
    assert (just_now.state, just_now.cause, just_now.settled) == (State.FAILED, "", False)
    assert just_now.reason == "the service has not said yet why"
    assert not seen("FAILED", endTime="2026-11-30T10:17:00Z").settled  # a clock of ours that is behind
    assert not seen("FAILED", endTime="2026-11-30T10:16:00Z", startTime=None).settled
    assert seen("FAILED", "exited", endTime="2026-11-30T10:16:00Z").settled
    for long_ago in ("2026-11-30T10:15:00Z", "2026-11-30T10:19:00Z"):
        known = seen("FAILED", endTime=long_ago)
        assert (known.state, known.reason, known.settled) == (State.FAILED, "", True)
    assert seen("SUCCEEDED", endTime="2026-11-30T10:16:00Z").settled


def test_what_its_log_says_of_a_failure() -> None:
    """Until the job says it; and only what tells the cause."""
    exited = "The replica workerpool0-0 exited with a non-zero status of 1. Termination reason: Error."
    stockout = "Resources are insufficient in region: us-central1."
    just_now = {"endTime": "2026-11-30T10:16:00Z"}
    failed = seen("FAILED", said=exited, **just_now)
    assert (failed.state, failed.cause, failed.reason, failed.settled) == (State.FAILED, "user-code", exited, True)
    taken = seen("FAILED", said=stockout, spot=True, **just_now)
    assert (taken.state, taken.cause, taken.settled) == (State.PREEMPTED, "preempted", True)
    unclear = seen("FAILED", said="To find out more please check the logs", **just_now)
    assert (unclear.reason, unclear.settled) == ("the service has not said yet why", False)
    assert seen("FAILED", stockout, said=exited, **just_now).reason == stockout


@pytest.mark.parametrize(
    "job",
    [
        {},
        {"name": 5, "state": 77, "jobSpec": [], "labels": "x", "error": "gone", "createTime": "yesterday"},
        {"jobSpec": {"workerPoolSpecs": [None, {"replicaCount": "many"}]}, "createTime": "2026-13-45T99:00:00Z"},
        {"jobSpec": {"workerPoolSpecs": ["x"]}, "error": {"code": "3", "message": ["no"]}, "state": "JOB_STATE_FAILED"},
    ],
)
def test_nothing_that_a_service_could_say_breaks_it(job: dict[str, Any]) -> None:
    found = described(job, "my-project", NOW)
    assert found.provider == "vertex" and found.attempt == 1 and found.created is None
