"""Jobs are created once, found again by name and fingerprint, described, stopped and listed."""

from __future__ import annotations

from typing import Any

import pytest

from cloudtrain.errors import RefusedError, SpecError, UnreachableError
from cloudtrain.providers.base import Request
from cloudtrain.providers.port import Client
from cloudtrain.record.state import State
from tests.clients.sagemaker.aws import Aws, Trouble
from tests.clients.sagemaker.conftest import plain
from tests.providers.sagemaker.jobs import CPU, GPU, request_of


@pytest.fixture
def request_() -> Request:
    return request_of(GPU)


def test_what_is_received_is_the_request(aws: Aws, client: Client, request_: Request) -> None:
    seen = client.create(request_)
    assert aws.jobs.received == [plain(request_.native)]
    assert (seen.native_id, seen.name, seen.state) == (request_.name, request_.name, State.PENDING)
    environment = request_.native["Environment"]
    assert seen.run_id == environment["CLOUDTRAIN_RUN_ID"]
    assert seen.fingerprint == environment["CLOUDTRAIN_FINGERPRINT"]
    assert seen.policy == environment["CLOUDTRAIN_POLICY"]
    assert (seen.attempt, seen.nodes) == (1, 2)
    assert aws.operations() == ["CreateTrainingJob"]


def test_what_is_described_right_after_is_the_same_job(aws: Aws, client: Client, request_: Request) -> None:
    made, seen = client.create(request_), client.describe(request_.name)
    same = ("native_id", "name", "run_id", "attempt", "fingerprint", "policy", "nodes", "url")
    assert [getattr(seen, name) for name in same] == [getattr(made, name) for name in same]
    assert (seen.state, seen.vendor_state) == (State.PROVISIONING, "InProgress/Starting")
    assert seen.created == pytest.approx(aws.jobs.known[request_.name]["CreationTime"], abs=1)


def test_creating_twice_is_one_job(aws: Aws, client: Client, request_: Request) -> None:
    first, second = client.create(request_), client.create(request_)
    assert first.native_id == second.native_id
    assert second.state is State.PROVISIONING
    assert len(aws.jobs.known) == 1


def test_a_name_that_another_job_has_is_refused(aws: Aws, client: Client, request_: Request) -> None:
    client.create(request_)
    aws.jobs.known[request_.name]["Environment"]["CLOUDTRAIN_FINGERPRINT"] = "other"
    for ask in (client.create, client.find):
        with pytest.raises(RefusedError) as caught:
            ask(request_)
        assert caught.value.cause == "invalid"
        assert request_.name in caught.value.message
        assert "name" in (caught.value.hint or "")


def test_an_answer_that_was_lost_makes_no_second_job(aws: Aws, client: Client, request_: Request) -> None:
    aws.troubles = [Trouble("CreateTrainingJob", done=True)]
    seen = client.create(request_)
    assert seen.native_id == request_.name
    assert len(aws.jobs.known) == 1
    # botocore itself asks again and meets the job it has made; then it is looked at.
    assert aws.operations() == ["CreateTrainingJob", "CreateTrainingJob", "DescribeTrainingJob"]


@pytest.mark.parametrize("trouble", [{"code": "InternalFailure", "status": 500}, {"done": True}, {}])
def test_no_answer_at_all_may_have_been_done(
    aws: Aws, client: Client, request_: Request, trouble: dict[str, Any]
) -> None:
    aws.troubles = [Trouble("CreateTrainingJob", 1000, **trouble)]
    made = trouble == {"done": True}
    if made:
        assert client.create(request_).fingerprint == request_.native["Environment"]["CLOUDTRAIN_FINGERPRINT"]
    else:
        with pytest.raises(UnreachableError) as caught:
            client.create(request_)
        assert request_.name in caught.value.message
    assert len(aws.jobs.known) == made
    assert aws.operations()[-1] == "DescribeTrainingJob"


def test_a_lost_answer_and_then_nobody_to_ask(aws: Aws, client: Client, request_: Request) -> None:
    aws.troubles = [Trouble("*", 1000, "ServiceUnavailable", 503)]
    with pytest.raises(UnreachableError, match="create training job"):
        client.create(request_)
    aws.troubles = []
    assert client.find(request_) is None
    assert client.create(request_).native_id == request_.name


def test_throttling_is_waited_out(aws: Aws, client: Client, request_: Request) -> None:
    throttled = {"code": "ThrottlingException", "message": "Rate exceeded"}
    aws.troubles = [Trouble("CreateTrainingJob", 2, **throttled), Trouble("DescribeTrainingJob", **throttled)]
    client.create(request_)
    assert client.describe(request_.name).state is State.PROVISIONING
    assert aws.operations() == ["CreateTrainingJob"] * 3 + ["DescribeTrainingJob"] * 2


def test_find(aws: Aws, client: Client, request_: Request) -> None:
    assert client.find(request_) is None
    client.create(request_)
    assert client.find(request_) == client.describe(request_.name)


def test_a_job_that_is_not_there(aws: Aws, client: Client) -> None:
    for ask in (client.describe, client.stop, lambda name: list(client.artefacts(name))):
        with pytest.raises(RefusedError, match="nobody-knows") as caught:
            ask("nobody-knows")
        assert caught.value.cause == "invalid"


def test_stopping(aws: Aws, client: Client, request_: Request) -> None:
    client.create(request_)
    client.stop(request_.name)
    assert client.describe(request_.name).state is State.STOPPING
    client.stop(request_.name)  # it is ending already
    for status in ("Stopped", "Completed", "Failed"):
        aws.jobs.set(request_.name, status, status)
        client.stop(request_.name)  # over


def test_stopping_what_does_not_stop(aws: Aws, client: Client, request_: Request) -> None:
    client.create(request_)
    aws.troubles = [Trouble("StopTrainingJob", code="ValidationException", message="cannot be stopped now")]
    with pytest.raises(RefusedError, match="cannot be stopped now"):
        client.stop(request_.name)


class TestList:
    @pytest.fixture
    def several(self, client: Client) -> list[Request]:
        requests = [request_of(CPU, name=name) for name in ("digits", "digits-two", "other")]
        for request in requests:
            client.create(request)
        for name in ("digits", "a-b-c", "digits-0123456789", "digits-0123456789-a", "digits-0123456789-a1-b"):
            native = {**requests[0].native, "TrainingJobName": name, "Environment": {}}
            client.create(requests[0]._replace(name=name, native=native))
        return requests

    def test_those_that_cloudtrain_has_made_newest_first(self, client: Client, several: list[Request]) -> None:
        found = list(client.list())
        assert [seen.name for seen in found] == [request.name for request in reversed(several)]
        assert [seen.run_id for seen in found] == [
            request.native["Environment"]["CLOUDTRAIN_RUN_ID"] for request in reversed(several)
        ]
        assert {seen.state for seen in found} == {State.PROVISIONING}

    def test_short_and_empty_pages(self, aws: Aws, client: Client, several: list[Request]) -> None:
        aws.jobs.page = 3
        assert [seen.name for seen in client.list()] == [request.name for request in reversed(several)]
        assert aws.operations("ListTrainingJobs") == ["ListTrainingJobs"] * 3

    @pytest.mark.usefixtures("several")
    def test_a_list_without_end(self, aws: Aws, client: Client) -> None:
        aws.jobs.endless = True
        with pytest.raises(UnreachableError, match="the service's list has no end"):
            list(client.list())

    def test_the_attempts_of_one_run(self, aws: Aws, client: Client, several: list[Request]) -> None:
        first = several[0]
        run_id = first.native["Environment"]["CLOUDTRAIN_RUN_ID"]
        variables = {**first.native["Environment"], "CLOUDTRAIN_ATTEMPT": "2"}
        name = f"{run_id}-a2"
        second = first._replace(name=name, native={**first.native, "TrainingJobName": name, "Environment": variables})
        client.create(second)
        aws.calls.clear()
        assert [(seen.name, seen.attempt) for seen in client.list(run_id)] == [(name, 2), (first.name, 1)]
        assert aws.operations() == ["ListTrainingJobs", "DescribeTrainingJob", "DescribeTrainingJob"]

    def test_what_is_no_run_is_not_asked_for(self, aws: Aws, client: Client) -> None:
        assert not list(client.list("no run!"))
        assert not list(client.list("x" * 100))
        assert not aws.calls

    def test_only_what_is_wanted_is_asked_for(self, aws: Aws, client: Client, several: list[Request]) -> None:
        aws.jobs.page = 6
        assert next(iter(client.list())).name == several[-1].name
        assert aws.operations("ListTrainingJobs") == ["ListTrainingJobs"]


ARN = "arn:aws:sagemaker:eu-west-1:111122223333:training-job/digits-3f9c2b71aa-a1"


@pytest.mark.parametrize("text", ["digits-3f9c2b71aa-a1", ARN])
def test_what_users_call_a_job(client: Client, text: str) -> None:
    assert client.native_id(text) == "digits-3f9c2b71aa-a1"


@pytest.mark.parametrize(
    "text", ["", "a b", "-a", "a" * 64, "a_b", "\x1b[31m", ARN.replace(":training-job", ":endpoint"), f"{ARN}\n"]
)
def test_what_is_no_name_of_a_job(client: Client, text: str) -> None:
    with pytest.raises(SpecError, match="is no training job"):
        client.native_id(text)


def test_a_job_of_another_region(client: Client) -> None:
    with pytest.raises(SpecError, match="us-east-2") as caught:
        client.native_id(ARN.replace("eu-west-1", "us-east-2"))
    assert "us-east-2" in (caught.value.hint or "")
