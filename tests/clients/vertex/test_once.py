"""A job is made once, whatever becomes of the answers; and what the service says no to is told."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import pytest
from werkzeug.serving import make_server
from werkzeug.wrappers import Response

from cloudtrain.errors import CloudtrainError, MissingError, RefusedError, UnreachableError
from cloudtrain.providers.port import Client
from tests.clients.vertex.conftest import PARENT
from tests.clients.vertex.service import Service, Trouble
from tests.providers.vertex.jobs import CPU, requested

Connect = Callable[[], Client]
LOST = Trouble("CreateCustomJob", done=True)
QUOTA = (
    "The following quota metrics exceed quota limits: aiplatform.googleapis.com/custom_model_training_nvidia_a100_gpus"
)


@pytest.mark.parametrize(
    "trouble",
    [
        LOST,
        Trouble("CreateCustomJob", half=True),
        Trouble("CreateCustomJob", 500, done=True),
        Trouble("CreateCustomJob", 503, done=True),
        Trouble("CreateCustomJob", 504, done=True),
    ],
    ids=["lost", "half", "500", "503", "504"],
)
def test_an_answer_is_lost_and_the_job_is_there(
    trouble: Trouble, either: str, service: Service, connect: Connect
) -> None:
    service.troubles.append(trouble)
    client, request = connect(), requested(CPU)

    made = client.create(request)

    assert len(service.jobs) == len(service.bodies) == 1
    assert made == client.find(request)


def test_the_one_who_looks_is_troubled_too(rest: None, service: Service, connect: Connect) -> None:
    client = connect()
    service.troubles += [
        Trouble("ListCustomJobs", 503),
        LOST,
        Trouble("ListCustomJobs", 502),
        Trouble("ListCustomJobs"),
    ]

    client.create(requested(CPU))

    assert len(service.jobs) == 1


@pytest.mark.parametrize(("status", "times"), [(429, 2), (503, 1), (500, 1)])
def test_what_has_not_been_done_is_sent_again(
    status: int, times: int, either: str, service: Service, connect: Connect
) -> None:
    service.troubles += [Trouble("CreateCustomJob", status)] * times

    connect().create(requested(CPU))

    assert len(service.jobs) == 1
    assert service.calls.count("CreateCustomJob") == times + 1


@pytest.mark.parametrize("status", [0, 504])
def test_what_may_be_done_yet_is_not_sent_again(status: int, rest: None, service: Service, connect: Connect) -> None:
    service.troubles.append(Trouble("CreateCustomJob", status))
    client, request = connect(), requested(CPU)

    with pytest.raises(UnreachableError, match="whether the job has been created is not known") as error:
        client.create(request)

    assert "run the same command again" in str(error.value)
    assert service.calls.count("CreateCustomJob") == 1
    service.create(PARENT, request.native)  # the service was slow
    client.create(request)
    assert len(service.jobs) == 1


def test_a_token_has_run_out(either: str, service: Service, connect: Connect) -> None:
    client = connect()
    service.troubles += [Trouble("ListCustomJobs", 401), Trouble("CreateCustomJob", 401)]

    client.create(requested(CPU))

    assert len(service.jobs) == 1


def test_credentials_are_not_taken(either: str, service: Service, connect: Connect) -> None:
    service.troubles += [Trouble("*", 401, "Request had invalid authentication credentials.")] * 9
    with pytest.raises(MissingError, match="does not take these credentials") as error:
        connect().find(requested(CPU))
    assert "gcloud auth application-default login" in str(error.value)
    assert len(service.calls) == 3


@pytest.mark.parametrize(
    ("status", "message", "cause", "hint"),
    [
        (429, QUOTA, "quota", "ask for more quota"),
        (429, "Resources are insufficient in region: europe-west4.", "capacity", "another region or accelerator"),
        (403, "Permission 'aiplatform.customJobs.create' denied on resource.", "permission", "Vertex AI User"),
        (403, "You do not have permission to act as service account: iam.serviceAccounts.actAs", "permission",
         "Service Account User"),
        (403, "Vertex AI API has not been used in project 123 before or it is disabled.", "permission",
         "gcloud services enable"),
        (400, "Image is not valid.", "invalid", "cloudtrain render"),
    ],
    ids=["quota", "capacity", "permission", "act-as", "switched-off", "invalid"],
)  # fmt: skip
def test_refusals(
    status: int, message: str, cause: str, hint: str, either: str, service: Service, connect: Connect
) -> None:
    service.troubles.append(Trouble("CreateCustomJob", status, message))

    with pytest.raises(RefusedError) as error:
        connect().create(requested(CPU))

    assert error.value.cause == cause
    assert message.rstrip(".") in error.value.message and "http://127" not in error.value.message.partition(")")[2]
    assert error.value.hint and hint in error.value.hint
    assert service.calls.count("CreateCustomJob") == 1 and not service.jobs


def test_all_that_was_found_is_shown(either: str, service: Service, connect: Connect) -> None:
    found = (
        "List of found errors:\t1.Field: job_spec.worker_pool_specs[0].machine_spec.machine_type; Message: Machine type"
        ' "n9-standard-4" is not supported.\t2.Field: job_spec.worker_pool_specs[0].disk_spec; '
        "Message: \x1b[2JToo small.\t"
    )
    service.troubles.append(Trouble("CreateCustomJob", 400, found))

    with pytest.raises(RefusedError) as error:
        connect().create(requested(CPU))

    assert error.value.message.splitlines()[1:] == [
        '  job_spec.worker_pool_specs[0].machine_spec.machine_type: Machine type "n9-standard-4" is not supported.',
        r"  job_spec.worker_pool_specs[0].disk_spec: \x1b[2JToo small.",
    ]


def test_reading_calls_are_repeated(either: str, service: Service, connect: Connect) -> None:
    client = connect()
    made = client.create(requested(CPU))
    lost = [Trouble("GetCustomJob"), Trouble("GetCustomJob", half=True)]
    for trouble in [*(Trouble("GetCustomJob", status) for status in (429, 500, 503, 504)), *lost]:
        service.troubles.append(trouble)
        assert client.describe(made.native_id) == made
        assert not service.troubles


def test_nobody_is_there(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that nobody listens at: refused at once. The patience of a minute is cut short for the test."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("CLOUDTRAIN_ENDPOINT_VERTEX", f"http://{address}")
        monkeypatch.setattr("cloudtrain.providers.vertex.jobs._PATIENCE_SECONDS", 1.0)
        with pytest.raises(UnreachableError, match=f"no answer from Vertex AI .http://{address}") as error:
            connect().describe(f"{PARENT}/customJobs/1")
    assert isinstance(error.value, CloudtrainError) and len(error.value.message) < 500


@pytest.mark.parametrize("body", [b"", b"<html>proxy</html>", b"[]", b'{"error": "text"}', b'{"error": []}', b"\xff"])
@pytest.mark.parametrize("status", [200, 400])
def test_an_answer_that_makes_no_sense(
    body: bytes, status: int, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = make_server("127.0.0.1", 0, Response(body, status))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        monkeypatch.setenv("CLOUDTRAIN_ENDPOINT_VERTEX", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setattr("cloudtrain.providers.vertex.jobs._PATIENCE_SECONDS", 0.3)
        try:
            found = connect().describe(f"{PARENT}/customJobs/1")
        except (UnreachableError, RefusedError):
            return
        assert (status, found.native_id) == (200, "")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
