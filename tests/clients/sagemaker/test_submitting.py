"""Submit and resume over boto3's real calls: nothing is started twice, and nothing that is there is given up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cloudtrain as ct
from cloudtrain.errors import RefusedError, SpecError, UnreachableError
from cloudtrain.record.state import State
from cloudtrain.runs.addressing import find_run
from cloudtrain.runs.run import Run
from tests.clients.sagemaker.aws import Aws, Trouble
from tests.clients.sagemaker.conftest import BUCKET, REGION

ROLE = "arn:aws:iam::111122223333:role/training"
SETTINGS = {"region": REGION, "role": ROLE, "bucket": BUCKET}
NO_QUOTA = {"code": "ResourceLimitExceeded", "message": "The account-level service limit is 0 Instances"}


@pytest.fixture
def job(tmp_path: Path, aws: Aws, boto: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> ct.Job:
    monkeypatch.setenv("CLOUDTRAIN_HOME", str(tmp_path / "home"))
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text("print('hello')\n")
    (folder / "job.yaml").write_text("name: digits\nentry: train.py\n")
    return ct.Job.load(folder / "job.yaml")


def submitted(job: ct.Job, **options: Any) -> Run:
    return ct.submit(job, "sagemaker", settings=SETTINGS, **options)


def names(aws: Aws) -> list[str]:
    return list(aws.jobs.known)


def test_a_refusal_of_the_second_try_is_none_where_the_first_one_was_done(aws: Aws, job: ct.Job) -> None:
    """The job itself has taken the quota for want of which its own repetition is refused."""
    aws.troubles = [Trouble("CreateTrainingJob", done=True), Trouble("CreateTrainingJob", **NO_QUOTA)]
    run = submitted(job)
    assert names(aws) == [run.native_id]
    assert find_run(run.run_id).native_id == run.native_id


def test_what_was_refused_is_tried_again_under_its_name(aws: Aws, job: ct.Job) -> None:
    aws.troubles = [Trouble("CreateTrainingJob", **NO_QUOTA)]
    with pytest.raises(RefusedError) as caught:
        submitted(job)
    assert caught.value.cause == "quota"
    assert names(aws) == []
    with pytest.raises(SpecError, match=r"never created: .*limit is 0"):
        find_run("latest")
    run = submitted(job)
    assert names(aws) == [run.native_id] == [f"{run.run_id}-a1"]


def test_a_resume_that_was_refused_is_repeated(aws: Aws, job: ct.Job) -> None:
    run = submitted(job)
    aws.jobs.set(run.native_id, "Failed", "Failed", FailureReason="AlgorithmError: exit code: 1")
    aws.troubles = [Trouble("CreateTrainingJob", **NO_QUOTA)]
    with pytest.raises(RefusedError):
        run.resume()
    assert find_run(run.run_id).status().state is State.FAILED  # as the first attempt ended
    again = find_run("latest").resume()
    assert names(aws) == [f"{run.run_id}-a1", f"{run.run_id}-a2"]
    assert again.native_id == f"{run.run_id}-a2"


def resumed_without_an_answer(aws: Aws, job: ct.Job, done: bool) -> Run:
    run = submitted(job)
    aws.jobs.set(run.native_id, "Stopped", "Stopped")
    aws.troubles = [Trouble("CreateTrainingJob", done=done)]
    aws.after = ("CreateTrainingJob", 2)  # then nothing answers, whatever is asked
    with pytest.raises(UnreachableError, match="create training job") as caught:
        run.resume()
    assert "run the same command again" in str(caught.value.hint)
    aws.after = None
    return run


@pytest.mark.parametrize("done", [False, True])
def test_a_resume_without_an_answer_is_repeated(aws: Aws, job: ct.Job, done: bool) -> None:
    run = resumed_without_an_answer(aws, job, done)
    assert find_run(run.run_id).resume().native_id == f"{run.run_id}-a2"
    assert names(aws) == [f"{run.run_id}-a1", f"{run.run_id}-a2"]
    with pytest.raises(SpecError, match="is PROVISIONING"):  # now its answer has been heard
        find_run(run.run_id).resume()


def test_a_submit_takes_up_a_resume_without_an_answer(aws: Aws, job: ct.Job) -> None:
    run = resumed_without_an_answer(aws, job, done=True)
    assert submitted(job).native_id == f"{run.run_id}-a2"  # and no other run beside it
    with pytest.raises(SpecError, match="is PROVISIONING"):
        find_run(run.run_id).resume()
    assert names(aws) == [f"{run.run_id}-a1", f"{run.run_id}-a2"]


def test_a_resume_without_an_answer_that_has_ended_is_gone_on_with(aws: Aws, job: ct.Job) -> None:
    run = resumed_without_an_answer(aws, job, done=True)
    aws.jobs.set(f"{run.run_id}-a2", "Stopped", "Stopped")
    assert find_run(run.run_id).resume().native_id == f"{run.run_id}-a3"


def test_a_run_of_a_submit_without_an_answer_goes_on(aws: Aws, job: ct.Job) -> None:
    """Nobody asked for a further attempt of it before: so to resume it is a mistake, and is told."""
    aws.troubles = [Trouble("CreateTrainingJob", done=True)]
    aws.after = ("CreateTrainingJob", 1)
    with pytest.raises(UnreachableError):
        submitted(job)
    aws.after = None
    with pytest.raises(SpecError, match="is PROVISIONING"):
        find_run("latest").resume()
    assert len(names(aws)) == 1


def test_a_run_that_goes_on_is_taken_up_though_a_later_one_has_ended(aws: Aws, job: ct.Job) -> None:
    first, second = submitted(job), submitted(job, new=True)
    assert second.run_id == f"{first.run_id}-2"
    aws.jobs.set(second.native_id, "Completed", "Completed")
    assert second.status().state is State.SUCCEEDED
    assert submitted(job).native_id == first.native_id
    aws.jobs.set(first.native_id, "Completed", "Completed")
    assert submitted(job).run_id == f"{first.run_id}-3"


def test_an_attempt_is_found_by_the_name_that_it_has_there(aws: Aws, job: ct.Job) -> None:
    run = submitted(job)
    aws.jobs.set(run.native_id, "Stopped", "Stopped")
    run.resume()
    for attempt, state in ((1, State.STOPPED), (2, State.PROVISIONING)):
        for name in (f"sagemaker:{run.run_id}-a{attempt}", f"{run.run_id}-a{attempt}"):
            status = find_run(name).status()
            assert (status.run_id, status.attempt, status.state) == (run.run_id, attempt, state)
