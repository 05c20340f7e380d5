"""The service's words as neutral states and causes; the words are from botocore's model, reasons from AWS's forums."""

from __future__ import annotations

from typing import Any

import pytest

from cloudtrain.providers.port import Client, Description
from cloudtrain.providers.sagemaker.description import described as described_from
from cloudtrain.record.state import State
from tests.clients.sagemaker.aws import Aws
from tests.local.project import require
from tests.providers.sagemaker.jobs import GPU, request_of

Describe = Any


@pytest.fixture
def described(aws: Aws, client: Client) -> Describe:
    """Creates a job and puts it into a state."""
    request = request_of(GPU)
    client.create(request)

    def described(status: str, secondary: str, **fields: Any) -> Description:
        aws.jobs.set(request.name, status, secondary, **fields)
        return client.describe(request.name)

    return described


WORDS = [
    ("InProgress", "Starting", State.PROVISIONING),
    ("InProgress", "LaunchingMLInstances", State.PROVISIONING),
    ("InProgress", "PreparingTrainingStack", State.PROVISIONING),
    ("InProgress", "Downloading", State.PROVISIONING),
    ("InProgress", "DownloadingTrainingImage", State.PROVISIONING),
    ("InProgress", "Pending", State.PENDING),
    ("InProgress", "Training", State.RUNNING),
    ("InProgress", "Updating", State.RUNNING),
    ("InProgress", "Uploading", State.RUNNING),
    ("InProgress", "Interrupted", State.RESTARTING),
    ("InProgress", "Restarting", State.RESTARTING),
    ("InProgress", "Hibernating", State.UNKNOWN),
    ("InProgress", "", State.UNKNOWN),
    ("InProgress", "MaxRuntimeExceeded", State.STOPPING),
    ("Stopping", "Stopping", State.STOPPING),
    ("Stopping", "MaxRuntimeExceeded", State.STOPPING),
    ("Stopping", "Uploading", State.STOPPING),
    ("Completed", "Completed", State.SUCCEEDED),
    ("Completed", "Hibernated", State.SUCCEEDED),
    ("Failed", "Failed", State.FAILED),
    ("Stopped", "Stopped", State.STOPPED),
    ("Stopped", "MaxRuntimeExceeded", State.TIMED_OUT),
    ("Stopped", "MaxWaitTimeExceeded", State.TIMED_OUT),
    ("Deleting", "Completed", State.UNKNOWN),
    ("Dreaming", "Training", State.UNKNOWN),
]


def test_states(described: Describe) -> None:
    for status, secondary, expected in WORDS:
        seen = described(status, secondary)
        assert (status, secondary, seen.state) == (status, secondary, expected)
        assert seen.vendor_state.startswith(status)
        assert secondary in seen.vendor_state


def test_every_word_of_the_model_is_known(described: Describe) -> None:
    try:
        from botocore.session import Session
    except ModuleNotFoundError:
        require(False, "botocore is not installed")
    model = Session().get_service_model("sagemaker")
    tested = {word for line in WORDS for word in line[:2]}
    for name in ("TrainingJobStatus", "SecondaryStatus"):
        assert set(model.shape_for(name).enum) <= tested
    for word in model.shape_for("SecondaryStatus").enum:
        seen = described("InProgress", word)
        assert seen.state is not State.UNKNOWN
        assert not seen.state.is_final


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("AlgorithmError: rank 1: ValueError: bad loss, exit code: 1", "user-code"),
        ("AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage", "user-code"),
        ("rank 1: ValueError: bad loss", "user-code"),
        ("AlgorithmError: node 1 (algo-2) is lost: its launcher's connection broke, exit code: 143", "node-lost"),
        ("AlgorithmError: node 1 (algo-2) did not connect to node 0 within 1800 s, exit code: 124", "infrastructure"),
        ("AlgorithmError: , exit code: 143", "preempted"),
        ("AlgorithmError: rank 0 ended with exit code: 143", "user-code"),
        ("CapacityError: Unable to provision requested ML compute capacity. Please retry.", "capacity"),
        ("InternalServerError: We encountered an internal error. Please try again.", "infrastructure"),
        ("ClientError: Data download failed:NoSuchKey (404): The specified key does not exist.", "data"),
        ("ClientError: Artifact upload failed:Insufficient disk space", "data"),
        ("ClientError: Data download failed:Failed to download data. 403 Forbidden", "permission"),
        ("ClientError: Cannot pull algorithm container. Either the image does not exist or its ...", "image"),
        ("ClientError: Please use an instance type with more memory", "invalid"),
        ("ResourceLimitExceeded: The account-level service limit is 0 Instances", "quota"),
    ],
)
def test_causes(described: Describe, reason: str, cause: str) -> None:
    seen = described("Failed", "Failed", FailureReason=reason, TrainingStartTime=1.8e9)
    assert (seen.state, seen.cause) == (State.FAILED, cause)
    assert "\n" not in seen.reason
    assert seen.reason.split()[0] == reason.split()[0]


def test_other_causes(described: Describe) -> None:
    assert described("Failed", "Failed", FailureReason="who knows").cause == ""
    assert described("Stopped", "MaxRuntimeExceeded").cause == "timeout"
    assert described("Stopped", "Stopped").cause == ""
    assert described("InProgress", "Training").cause == ""
    assert described("Completed", "Completed").cause == ""


def test_what_controls_a_terminal_is_taken_out(described: Describe) -> None:
    reason = "AlgorithmError: \x1b[2Jgone\x07\x9b31m\r\nnext\u2028line" + "x" * 5000
    seen = described("Failed", "Failed\x1b[2J", FailureReason=reason)
    assert seen.reason.isprintable()
    assert seen.reason.startswith(r"AlgorithmError: \x1b[2Jgone\x07\x9b31m | next | line")
    assert len(seen.reason) < 2100
    assert seen.vendor_state == r"Failed/Failed\x1b[2J"


def test_restarts(described: Describe) -> None:
    def after(*words: str) -> int:
        steps = [{"Status": word, "StartTime": 1.8e9, "StatusMessage": word} for word in words]
        return int(described("InProgress", words[-1], SecondaryStatusTransitions=steps).restarts)

    once = ("Starting", "Downloading", "Training", "Interrupted")
    assert after(*once[:3]) == 0
    assert after(*once) == 0
    assert after(*once, "Starting") == 1
    assert after(*once, "Restarting", "Starting", "Training") == 1
    assert after(*once, *once, "Starting") == 2
    assert after(*once, "MaxWaitTimeExceeded") == 0
    assert after(*once, "Stopping", "Stopped") == 0


def test_what_is_going_on_is_told(described: Describe) -> None:
    steps = [
        {"Status": "Starting", "StartTime": 1.8e9, "StatusMessage": "Starting the training job"},
        {"Status": "Pending", "StartTime": 1.8e9, "StatusMessage": "Waiting for\ncapacity"},
    ]
    assert described("InProgress", "Pending", SecondaryStatusTransitions=steps).reason == "Waiting for | capacity"
    assert described("InProgress", "Training", SecondaryStatusTransitions=steps).reason == ""
    assert described("Completed", "Completed", SecondaryStatusTransitions=steps).reason == ""
    both = {"SecondaryStatusTransitions": steps, "FailureReason": "CapacityError: none"}
    assert described("Failed", "Failed", **both).reason == "CapacityError: none"


def test_times(described: Describe) -> None:
    seen = described("InProgress", "Training", TrainingStartTime=1.8e9, LastModifiedTime=1.8e9 + 5)
    assert (seen.started, seen.ended) == (1.8e9, None)
    seen = described("Completed", "Completed", TrainingEndTime=1.8e9 + 60.5)
    assert (seen.started, seen.ended) == (1.8e9, 1.8e9 + 60.5)


def test_a_job_that_never_began_ended_when_it_was_last_changed(described: Describe) -> None:
    seen = described("Failed", "Failed", FailureReason="CapacityError: none", LastModifiedTime=1.8e9 + 5)
    assert (seen.started, seen.ended) == (None, 1.8e9 + 5)


@pytest.mark.parametrize(
    ("resources", "nodes"),
    [
        ({"InstanceCount": 3, "VolumeSizeInGB": 1}, 3),
        ({"InstanceGroups": [{"InstanceCount": 1}, {"InstanceCount": 4}], "VolumeSizeInGB": 1}, 5),
        ({}, 0),
    ],
)
def test_nodes(described: Describe, resources: dict[str, Any], nodes: int) -> None:
    assert described("InProgress", "Training", ResourceConfig=resources).nodes == nodes


def test_nodes_of_the_preference_that_was_taken() -> None:
    """Of a service that earlier versions of botocore do not know to have preferences."""
    resources = {"InstancePreferences": [{"InstanceCount": 4}], "SelectedInstanceCount": 2}
    assert described_from({"ResourceConfig": resources}, "eu-west-1").nodes == 2


def test_a_job_that_is_not_ours(described: Describe) -> None:
    seen = described("InProgress", "Training", Environment={"CLOUDTRAIN_ATTEMPT": "many"})
    assert (seen.run_id, seen.attempt, seen.fingerprint, seen.policy) == ("", 1, "", "")


def test_an_answer_with_next_to_nothing(aws: Aws, client: Client) -> None:
    aws.jobs.known["x"] = {"TrainingJobName": "x"}
    seen = client.describe("x")
    assert (seen.name, seen.state, seen.vendor_state) == ("x", State.UNKNOWN, "")
    assert list(client.artefacts("x")) == []


def test_the_console(described: Describe) -> None:
    seen = described("InProgress", "Training")
    assert seen.url == (
        f"https://eu-west-1.console.aws.amazon.com/sagemaker/home?region=eu-west-1#/jobs/{seen.native_id}"
    )
