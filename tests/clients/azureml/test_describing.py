"""What the service tells of a job, and what it makes of its end."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from cloudtrain.errors import RefusedError, SpecError, UnreachableError
from cloudtrain.providers.azureml.states import ended, seconds_of, state_of
from cloudtrain.record.state import State
from tests.clients.azureml.answers import Fault, cut, error, fault, lost
from tests.clients.azureml.service import ACCOUNT, ARM_ID, Service
from tests.providers.azureml.jobs import request as request_of

STATES = {
    "NotStarted": "PENDING",
    "Queued": "PENDING",
    "Starting": "PROVISIONING",
    "Provisioning": "PROVISIONING",
    "Preparing": "PROVISIONING",
    "Running": "RUNNING",
    "Finalizing": "RUNNING",
    "CancelRequested": "STOPPING",
    "Completed": "SUCCEEDED",
    "Failed": "FAILED",
    "Canceled": "STOPPED",
    "NotResponding": "UNKNOWN",
    "Paused": "UNKNOWN",
    "Unknown": "UNKNOWN",
}


@pytest.mark.usefixtures("vendor")
def test_every_word_of_the_vendors_enumeration_has_a_state() -> None:
    from azure.ai.ml._restclient.arm_ml_service.models import JobStatus

    assert {word.value for word in JobStatus} == set(STATES)
    assert {word: state_of(word).value for word in STATES} == STATES


@pytest.mark.parametrize("word", ["Hibernating", "completed", "", "\x1b[31mFailed", "Queued\nRunning"])
def test_words_that_nobody_knows_are_shown(service: Service, client: Any, word: str) -> None:
    service.has_job("odd", word)
    seen = client.describe("odd")
    assert seen.state is State.UNKNOWN
    assert seen.vendor_state.isprintable()
    assert seen.vendor_state


@pytest.mark.parametrize(
    "text, state, cause",
    [
        (
            "UserError Execution failed. User process 'python3' exited with status code 1. preempt quota",
            "",
            "user-code",
        ),
        ("Nodes of this job got pre-empted. Please resubmit", "PREEMPTED", "preempted"),
        ("The low priority node was evicted", "PREEMPTED", "preempted"),
        ("UserError JobNodeCountExceedsCoreQuota", "", "quota"),
        ("AllocationFailed: not enough capacity in the region", "", "capacity"),
        ("UserError Failed to pull Docker image ghcr.io/x/y:1: manifest unknown", "", "image"),
        ("UserError Image build failed", "", "image"),
        ("UserError data-capability: StreamAccess.NotFound", "", "data"),
        ("The identity does not have access: AuthorizationPermissionMismatch", "", "permission"),
        ("Node 10.0.0.5 became unreachable", "", "node-lost"),
        ("UserError something else", "", "user-code"),
        ("ServiceError InternalServerError", "", "infrastructure"),
        ("", "", ""),
    ],
)
def test_failures_have_causes(text: str, state: str, cause: str) -> None:
    assert ended(State.FAILED, text, ran=None, limit=None) == (State(state or "FAILED"), cause)


@pytest.mark.parametrize(
    "text, ran, limit, state",
    [
        ("", 100.0, 3600.0, "STOPPED"),
        ("", 3600.5, 3600.0, "TIMED_OUT"),
        ("", 3600.5, None, "STOPPED"),
        ("", None, 3600.0, "STOPPED"),
        ("The job was canceled: it exceeded the maximum run duration", None, None, "TIMED_OUT"),
        ("Canceled by user preempt", None, None, "STOPPED"),
    ],
)
def test_a_limit_that_is_reached_is_no_cancellation(
    text: str, ran: float | None, limit: float | None, state: str
) -> None:
    assert ended(State.STOPPED, text, ran=ran, limit=limit)[0] is State(state)


def test_what_goes_on_has_no_cause() -> None:
    assert ended(State.RUNNING, "quota", ran=1e6, limit=1.0) == (State.RUNNING, "")


@pytest.mark.parametrize(
    "text, seconds",
    [("PT1H", 3600), ("P1DT2H3M4.5S", 93_784.5), ("PT90S", 90), ("P", None), ("1h", None), ("PT", None)],
)
def test_durations(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


def test_a_job_is_told_in_full(service: Service, client: Any) -> None:
    request = request_of(resources={"nodes": 3}, attempt=2)
    service.has_job(
        request.name,
        "Failed",
        tags=request.native["tags"],
        environmentVariables=request.native["environment_variables"],
        resources={"instanceCount": 3},
    )
    message = "Execution failed.\nUser process 'python3' exited with status code 1.\n\x1b[31mValueError"
    service.set(
        request.name,
        "Failed",
        startTimeUtc="2026-11-30T12:05:00.5Z",
        endTimeUtc="2026-11-30T12:15:00",
        error={"error": {"code": "UserError", "message": message, "innerError": {"code": "UserTrainingScriptFailed"}}},
        logFiles={"user_logs/retry_002/std_log_process_0.txt": "https://x", "user_logs/std_log_process_0.txt": "x"},
    )
    seen = client.describe(request.name)
    assert (seen.state, seen.vendor_state, seen.cause) == (State.FAILED, "Failed", "user-code")
    assert "exited with status code 1" in seen.reason
    assert seen.reason.isprintable()
    assert (seen.run_id, seen.attempt, seen.nodes) == (request.spec["run_id"], 2, 3)
    variables = request.native["environment_variables"]
    assert (seen.fingerprint, seen.policy) == (variables["CLOUDTRAIN_FINGERPRINT"], variables["CLOUDTRAIN_POLICY"])
    moments = [datetime(2026, 11, 30, 12, minute, tzinfo=timezone.utc).timestamp() for minute in (0, 5, 15)]
    assert [seen.created, seen.started, seen.ended] == [pytest.approx(m, abs=0.6) for m in moments]
    assert seen.restarts == 2
    assert client.find(request) == seen


def test_a_job_of_somebody_else(service: Service, client: Any) -> None:
    service.has_job("theirs", "Completed", environmentVariables=None, tags=None, resources=None, limits={"timeout": 5})
    service.details.clear()
    seen = client.describe("theirs")
    assert (seen.state, seen.run_id, seen.attempt, seen.fingerprint) == (State.SUCCEEDED, "", 1, "")
    assert (seen.started, seen.ended, seen.nodes) == (None, None, 0)


def test_a_waiting_job_costs_one_call(service: Service, client: Any) -> None:
    service.has_job("waiting", "Queued")
    client.describe("waiting")
    assert service.asked == ["GetJob"]


def test_a_job_that_is_not_there(service: Service, client: Any) -> None:
    for call in (client.describe, client.stop, lambda name: client.logs(name, {}), lambda n: [*client.artefacts(n)]):
        with pytest.raises(RefusedError, match="there is no job 'missing' in workspace my-workspace"):
            call("missing")


@pytest.mark.parametrize("answer", [lost, cut, fault(429, "TooManyRequests"), fault(500), fault(401, "Expired")])
def test_reading_goes_on_after_faults(service: Service, client: Any, answer: Fault) -> None:
    service.has_job("running", "Running")
    for operation in ("GetJob", "GetWorkspace", "GetDetails"):
        service.will(operation, answer)
    assert client.describe("running").state is State.RUNNING


def test_an_answer_that_makes_no_sense(service: Service, client: Any) -> None:
    from werkzeug.wrappers import Response

    service.will("GetJob", lambda _: Response("<html>a proxy</html>", 200))
    with pytest.raises(UnreachableError, match="is no JSON"):
        client.describe("any")


def test_names_are_one_step_of_the_address(service: Service, client: Any) -> None:
    with pytest.raises(RefusedError, match="there is no job"):
        client.describe("../datastores/workspaceblobstore")


def test_stop(service: Service, client: Any) -> None:
    service.has_job("running", "Running")
    client.stop("running")
    assert client.describe("running").state is State.STOPPING
    client.stop("running")
    service.set("running", "Canceled")
    service.will("CancelJob", lambda _: error(400, "UserError", "The run is in a terminal state"))
    client.stop("running")
    service.set("running", "Running")
    service.will("CancelJob", lambda _: error(403, "AuthorizationFailed", "not you"))
    with pytest.raises(RefusedError, match="not you"):
        client.stop("running")


def test_list(service: Service, client: Any) -> None:
    for attempt in (1, 2, 3):
        request = request_of(attempt=attempt)
        service.has_job(
            request.name, tags=request.native["tags"], environmentVariables=request.native["environment_variables"]
        )
    service.has_job("theirs", tags={"team": "x"})
    service.has_job("other", "Running", tags={"cloudtrain_run": "other-1"})
    names = [job.name for job in client.list()]
    assert names == ["other", *(request_of(attempt=n).name for n in (3, 2, 1))]
    run_id = request_of().spec["run_id"]
    assert [job.attempt for job in client.list(run_id)] == [3, 2, 1]
    assert [job.name for job in client.list("other-1")] == ["other"]
    assert list(client.list("none")) == []
    assert service.times("ListJobs") == 4 * 2


def test_a_list_without_end(service: Service, client: Any) -> None:
    service.endless = True
    with pytest.raises(UnreachableError, match="the service's list has no end"):
        list(client.list())


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-13-01T00:00:00Z"])
def test_times_at_the_end_of_the_calendar(service: Service, client: Any, time: str) -> None:
    service.has_job("x", "Running")
    service.jobs["x"]["properties"]["startTime"] = time
    service.details["x"] = {"startTimeUtc": time, "endTimeUtc": time}
    assert client.describe("x").state is State.RUNNING


def test_native_id(client: Any) -> None:
    assert client.native_id("digits-1-a1") == "digits-1-a1"
    assert client.native_id(f"{ARM_ID}/jobs/digits-1-a1") == "digits-1-a1"
    assert client.native_id(f"azureml:{ARM_ID.lower()}/jobs/digits-1-a1") == "digits-1-a1"
    assert client.native_id("https://ml.azure.com/runs/digits-1-a1?wsid=/subscriptions/x&tid=y") == "digits-1-a1"
    assert client.native_id("https://ml.azure.com/experiments/id/1/runs/digits-1-a1?wsid=x") == "digits-1-a1"
    elsewhere = ARM_ID.replace(ACCOUNT["workspace"], "theirs")
    with pytest.raises(SpecError, match="is in workspace theirs; the settings say my-workspace"):
        client.native_id(f"{elsewhere}/jobs/digits-1-a1")
    for text in ("", "a b", "../x", "-x", f"{ARM_ID}/jobs/", f"{ARM_ID}/models/m", "x" * 256):
        with pytest.raises(SpecError, match="no name of an Azure ML job"):
            client.native_id(text)
