"""A job's life: its states in order, and every way in which it can end."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.emulator.sagemaker.aws import BUCKET, Aws, nodes, opened, until

QUICK = "print('hello')"
FOREVER = """
import signal, sys, time
def end(*_):
    print('told to end')
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print('runs')
time.sleep(600)
"""
SPOT = {
    "EnableManagedSpotTraining": True,
    "StoppingCondition": {"MaxRuntimeInSeconds": 600, "MaxWaitTimeInSeconds": 1200},
}


def _words(job: dict[str, Any]) -> list[str]:
    return [transition["Status"] for transition in job["SecondaryStatusTransitions"]]


def test_a_job_goes_through_the_services_states(aws: Aws) -> None:
    job = aws.end(aws.submit("quick", QUICK))
    assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("Completed", "Completed")
    assert _words(job) == ["Starting", "Downloading", "Training", "Uploading", "Completed"]
    assert job["TrainingJobArn"] == "arn:aws:sagemaker:eu-west-1:111122223333:training-job/quick"
    times = [transition["StartTime"] for transition in job["SecondaryStatusTransitions"]]
    assert times == sorted(times)
    ends = [transition["EndTime"] for transition in job["SecondaryStatusTransitions"]]
    assert ends[:-1] == times[1:]
    assert job["CreationTime"] <= job["TrainingStartTime"] <= job["TrainingEndTime"]
    assert job["BillableTimeInSeconds"] >= 1
    assert job["ModelArtifacts"]["S3ModelArtifacts"] == f"s3://{BUCKET}/quick/quick/output/model.tar.gz"
    assert "FailureReason" not in job


def test_a_job_that_is_stopped_gets_sigterm_and_may_end_by_itself(aws: Aws) -> None:
    name = aws.submit("stopped", FOREVER)
    until(lambda: aws.streams(name) and aws.lines(aws.streams(name)[0]) == ["runs"], "the program runs")
    aws.sagemaker.stop_training_job(TrainingJobName=name)
    assert aws.describe(name)["TrainingJobStatus"] in ("Stopping", "Stopped")
    job = aws.end(name)
    assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("Stopped", "Stopped")
    assert _words(job) == ["Starting", "Downloading", "Training", "Stopping", "Stopped"]
    assert aws.lines(aws.streams(name)[0]) == ["runs", "told to end"]


def test_what_does_not_end_is_killed_when_the_grace_is_over(aws: Aws) -> None:
    deaf = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf')\ntime.sleep(600)"
    name = aws.submit("deaf", deaf, StoppingCondition={"MaxRuntimeInSeconds": 1})
    job = aws.end(name)
    assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")
    assert _words(job)[-2:] == ["Stopping", "MaxRuntimeExceeded"]


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import sys; sys.exit(3)", "AlgorithmError: exit code: 3"),
        ("import os; os.kill(os.getpid(), 9)", "AlgorithmError: exit code: 137"),
    ],
    ids=["exit", "signal"],
)
def test_a_program_that_fails_fails_the_job(aws: Aws, program: str, reason: str, request: Any) -> None:
    job = aws.end(aws.submit(f"fails-{request.node.callspec.id}", program))
    assert (job["TrainingJobStatus"], job["FailureReason"]) == ("Failed", reason)
    assert _words(job) == ["Starting", "Downloading", "Training", "Failed"]
    assert "ModelArtifacts" not in job


def test_the_failure_file_is_the_reason_as_far_as_there_is_room(aws: Aws) -> None:
    program = """
import os, pathlib, sys
folder = pathlib.Path(os.environ["CLOUDTRAIN_SM_ROOT"], "output")
folder.joinpath("failure").write_text("no luck\\n" + "x" * 2000)
sys.exit(1)
"""
    reason = aws.end(aws.submit("explains", program))["FailureReason"]
    assert reason.startswith("AlgorithmError: no luck\nxxx")
    assert reason.endswith("x, exit code: 1")
    assert len(reason) == 1024


def test_the_other_nodes_may_end_by_themselves_when_one_has_failed(aws: Aws) -> None:
    program = """
import json, os, pathlib, sys, time
config = json.loads(pathlib.Path(os.environ["CLOUDTRAIN_SM_ROOT"], "input/config/resourceconfig.json").read_text())
if config["current_host"] == "algo-2":
    sys.exit(7)
time.sleep(1)
print("noticed")
"""
    name = aws.submit("one-of-two", program, ResourceConfig=nodes(2))
    assert aws.end(name)["FailureReason"] == "AlgorithmError: exit code: 7"
    assert aws.lines(aws.streams(name)[0]) == ["noticed"]


COUNTS = """
import os, pathlib, signal, sys, time
folder = pathlib.Path(os.environ["CLOUDTRAIN_SM_ROOT"], "checkpoints")
starts = len(list(folder.iterdir()))
print(f"start {starts}")
folder.joinpath(str(starts)).write_text(str(starts))
def end(*_):
    folder.joinpath("told").write_text("yes")
    sys.exit(143)
signal.signal(signal.SIGTERM, end)
if starts < int(os.environ["UNTIL"]):
    time.sleep(600)
"""


def _kept(name: str) -> dict[str, Any]:
    return {"CheckpointConfig": {"S3Uri": f"s3://{BUCKET}/{name}/kept", "LocalPath": "/opt/ml/checkpoints"}}


def test_an_interrupted_spot_job_goes_on_from_its_checkpoints(aws: Aws) -> None:
    name = aws.submit("spot", COUNTS, Environment={"UNTIL": "3"}, **SPOT, **_kept("spot"))
    job = aws.end(name)
    assert _words(job) == [
        "Starting", "Downloading", "Training", "Interrupted", "Starting", "Downloading", "Training", "Interrupted",
        "Starting", "Downloading", "Training", "Uploading", "Completed",
    ]  # fmt: skip
    # "0", then that one and "told", then those, "2" and "told" again.
    assert [aws.lines(stream) for stream in aws.streams(name)] == [["start 0"], ["start 2"], ["start 3"]]
    assert all(re.fullmatch(r"spot/algo-1-\d{10}", stream) for stream in aws.streams(name))


def test_an_interruption_may_come_without_notice(aws: Aws) -> None:
    name = aws.submit("torn", COUNTS, Environment={"UNTIL": "1"}, **SPOT, **_kept("torn"))
    assert aws.end(name)["TrainingJobStatus"] == "Completed"
    assert [aws.lines(stream) for stream in aws.streams(name)] == [["start 0"], ["start 1"]]
    assert aws.keys("torn/kept/") == ["torn/kept/0", "torn/kept/1"]


def test_a_machine_that_is_not_spots_and_is_taken_away_is_a_fault_of_the_platform(aws: Aws) -> None:
    job = aws.end(aws.submit("on-demand", FOREVER))
    assert job["FailureReason"].startswith("InternalServerError: ")


def test_a_lost_node_ends_the_job_unless_it_may_be_repeated(aws: Aws) -> None:
    peers = "import time\ntime.sleep(2.5)"
    once = aws.submit("once", peers, ResourceConfig=nodes(2))
    again = aws.submit("again", peers, ResourceConfig=nodes(2), RetryStrategy={"MaximumRetryAttempts": 1})
    job = aws.end(once)
    assert job["TrainingJobStatus"] == "Failed"
    assert job["FailureReason"].startswith("InternalServerError: ")
    job = aws.end(again)
    assert _words(job) == [
        "Starting", "Downloading", "Training", "Restarting", "Starting", "Downloading", "Training", "Uploading",
        "Completed",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no-machines", "CapacityError: Unable to provision requested ML compute capacity"),
        ("no-image", "ClientError: Cannot pull algorithm container. Either the image does not exist"),
    ],
)
def test_what_is_not_there_fails_a_job_that_was_accepted(aws: Aws, name: str, reason: str) -> None:
    job = aws.end(aws.submit(name, QUICK))
    assert job["TrainingJobStatus"] == "Failed"
    assert job["FailureReason"].startswith(reason)


def test_a_state_that_nobody_knows_is_shown_for_some_polls(aws: Aws) -> None:
    name = aws.submit("odd", FOREVER)
    job = aws.until(name, lambda job: job["SecondaryStatus"] == "Hibernating")
    assert (job["TrainingJobStatus"], _words(job)[-1]) == ("InProgress", "Hibernating")
    aws.until(name, lambda job: job["SecondaryStatus"] == "Training")
    aws.sagemaker.stop_training_job(TrainingJobName=name)
    assert "Hibernating" not in _words(aws.end(name))


def test_what_takes_the_service_its_time(tmp_path: Path) -> None:
    """Stopped before it has started, or waiting longer than it said: in an emulator whose clock is not so fast."""
    with opened(tmp_path, speed=5.0) as aws:
        waits = aws.submit(
            "waits", QUICK, EnableManagedSpotTraining=True,
            StoppingCondition={"MaxRuntimeInSeconds": 2, "MaxWaitTimeInSeconds": 2},
        )  # fmt: skip
        early = aws.submit("early", QUICK)
        aws.sagemaker.stop_training_job(TrainingJobName=early)
        job = aws.end(early)
        assert _words(job) == ["Starting", "Stopping", "Stopped"]
        assert "TrainingStartTime" not in job
        assert aws.keys("early/early/") == []
        job = aws.end(waits)
        assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("Stopped", "MaxWaitTimeExceeded")


def test_an_emulator_that_is_closed_ends_its_jobs(tmp_path: Path) -> None:
    with opened(tmp_path) as aws:
        names = [aws.submit(f"left-{number}", FOREVER) for number in range(2)]
        for name in names:
            aws.until(name, lambda job: job["SecondaryStatus"] == "Training")
