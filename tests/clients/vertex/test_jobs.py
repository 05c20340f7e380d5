"""Jobs on Vertex AI through the port: over Google's own client, by REST and by gRPC."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from cloudtrain.errors import MissingError, NotFoundError, RefusedError, SpecError, UnreachableError
from cloudtrain.providers.base import Request
from cloudtrain.providers.port import Client
from cloudtrain.record.state import State
from tests.clients.vertex.conftest import PARENT, PROJECT, REGION
from tests.clients.vertex.service import Service, Trouble, by_grpc, canonical
from tests.local.project import require
from tests.providers import golden
from tests.providers.vertex.jobs import CPU, GPU, requested

Connect = Callable[[], Client]
GOLDEN = {
    file.parent.name: content["request"]
    for file in sorted(Path(golden.__file__).parent.glob("*/vertex.json"))
    if "request" in (content := json.loads(file.read_text()))
}


def test_a_job_is_created_found_and_described(either: str, service: Service, connect: Connect) -> None:
    request, client = requested(GPU), connect()

    assert client.find(request) is None
    made = client.create(request)

    assert made.name == request.name
    assert (made.state, made.vendor_state, made.nodes) == (State.PENDING, "QUEUED", 3)
    assert made.fingerprint and made.run_id == request.native["labels"]["cloudtrain_run"]
    assert json.loads(made.policy)["retries"]["preemption"] == 10
    assert made.created == pytest.approx(1_796_032_800.123456789)
    assert client.find(request) == made == client.describe(made.native_id)
    number = made.native_id.rpartition("/")[2]
    console = "https://console.cloud.google.com/agent-platform/locations/europe-west4/training"
    assert made.url == f"{console}/{number}?project=my-project"


@pytest.mark.parametrize("name", GOLDEN)
def test_what_is_sent_is_what_was_rendered(name: str, rest: None, service: Service, connect: Connect) -> None:
    native = GOLDEN[name]

    connect().create(Request("vertex", native["displayName"], native, {}, ()))

    assert canonical(service.bodies[0]) == native
    pool = service.bodies[0]["jobSpec"]["workerPoolSpecs"][0]
    assert isinstance(pool["replicaCount"], str)  # an int64


def test_over_grpc_too(either: str, service: Service, connect: Connect) -> None:
    request = requested(GPU, environment={"env": {"EMPTY": "", "DOLLAR": "$(HOME) $HOME", "ODD": "é\u2028\t\n'\""}})

    connect().create(request)

    sent = canonical(service.bodies[0])
    for pool in request.native["jobSpec"]["workerPoolSpecs"]:  # protobuf has nothing that is there and empty
        pool["containerSpec"]["env"] = [{k: v for k, v in one.items() if v} for one in pool["containerSpec"]["env"]]
    assert sent == request.native


def test_over_grpc_behind_tls(service: Service, tmp_path: Path) -> None:
    """In a process of its own: gRPC reads its variable once."""
    try:
        import trustme
    except ModuleNotFoundError as error:
        require(False, f"trustme is not installed: {error}")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    server = authority.issue_cert("localhost")
    chain = b"".join(part.bytes() for part in server.cert_chain_pems)
    service.create(PARENT, requested(CPU).native)
    program = (
        "from cloudtrain.providers import registry\n"
        f"client = registry.connect('vertex', {{'project': {PROJECT!r}, 'region': {REGION!r}}})\n"
        "print([found.state.value for found in client.list()])"
    )
    with by_grpc(service, (server.private_key_pem.bytes(), chain)) as url:
        roots = {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(tmp_path / "ca.pem"), "CLOUDTRAIN_ENDPOINT_VERTEX": url}
        ran = subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, **roots}, capture_output=True, text=True, check=False
        )
    assert ran.stdout == "['PENDING']\n", ran.stderr


def test_nothing_of_googles_is_loaded_before_it_is_needed() -> None:
    program = (
        "import sys\n"
        "from cloudtrain.providers import registry\n"
        "registry.connect('vertex', {'project': 'p', 'region': 'r'})\n"
        "print([name for name in sys.modules if name.startswith(('google.cloud.', 'google.a', 'grpc', 'requests'))])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_states_are_seen(either: str, service: Service, connect: Connect) -> None:
    client = connect()
    made = client.create(requested(CPU))
    job = next(iter(service.jobs.values()))
    seen = []
    for word in ("PENDING", "RUNNING", "UPDATING", "PAUSED", "CANCELLING", "SUCCEEDED"):
        job["state"] = f"JOB_STATE_{word}"
        found = client.describe(made.native_id)
        seen.append((found.vendor_state, found.state))
    assert seen == [
        ("PENDING", State.PROVISIONING),
        ("RUNNING", State.RUNNING),
        ("UPDATING", State.RUNNING),
        ("PAUSED", State.UNKNOWN),
        ("CANCELLING", State.STOPPING),
        ("SUCCEEDED", State.SUCCEEDED),
    ]


def test_a_state_that_nobody_knows_is_shown_and_goes_on(either: str, service: Service, connect: Connect) -> None:
    client = connect()
    made = client.create(requested(CPU))
    next(iter(service.jobs.values()))["state"] = 99 if either == "rest" else "JOB_STATE_HIBERNATING"

    found = client.describe(made.native_id)

    assert (found.state, found.vendor_state) == (State.UNKNOWN, "99")


def test_the_end_and_its_reason(either: str, service: Service, connect: Connect) -> None:
    client = connect()
    made = client.create(requested(CPU))
    next(iter(service.jobs.values())).update(
        state="JOB_STATE_FAILED",
        startTime="2026-11-30T10:05:00Z",
        endTime="2026-11-30T10:06:00.5Z",
        error={
            "code": 3,
            "message": "The replica workerpool0-0 exited with a non-zero status of 1.\n\x1b[31mReason: no.",
        },
    )

    found = client.describe(made.native_id)

    assert (found.state, found.cause) == (State.FAILED, "user-code")
    assert found.reason == r"The replica workerpool0-0 exited with a non-zero status of 1. \x1b[31mReason: no."
    assert found.started and found.ended
    assert found.ended - found.started == pytest.approx(60.5)


WHY = "Resources are insufficient in region: us-central1."


def test_a_failure_is_explained_by_the_log_before_the_job_does(rest: None, service: Service, connect: Connect) -> None:
    """The job's own error comes a minute later."""
    made = connect().create(requested(CPU))
    number, job = next(iter(service.jobs.items()))
    now = datetime.now(timezone.utc)
    moments = [f"{now - timedelta(seconds=ago):%Y-%m-%dT%H:%M:%SZ}" for ago in (600, 300, 5, 6)]
    job.update(state="JOB_STATE_FAILED", createTime=moments[0], startTime=moments[0], endTime=moments[2])
    service.log.add(number, "service", "Preempted, trying again.", at=moments[1], number=1, severity="ERROR")
    service.log.add(number, "workerpool0-0", "pulling image", at=moments[3], number=2, severity="ERROR")

    unclear = connect().describe(made.native_id)
    assert (unclear.state, unclear.cause, unclear.settled) == (State.FAILED, "", False)
    service.troubles.append(Trouble("ListLogEntries", 403))
    assert connect().describe(made.native_id) == unclear
    service.troubles.append(Trouble("ListLogEntries", 429))
    assert connect().describe(made.native_id) == unclear
    assert not service.troubles

    service.log.add(number, "service", WHY, at=moments[3], number=3, severity="ERROR")
    clear = connect().describe(made.native_id)
    assert (clear.state, clear.cause, clear.reason, clear.settled) == (State.FAILED, "capacity", WHY, True)
    asked = service.calls.count("ListLogEntries")
    job["error"] = {"code": 8, "message": WHY}
    assert connect().describe(made.native_id) == clear
    assert service.calls.count("ListLogEntries") == asked


def test_attempts_are_listed_newest_first(either: str, service: Service, connect: Connect) -> None:
    client = connect()
    for number in range(1, 6):
        request = requested(CPU)
        native = json.loads(
            json.dumps(request.native).replace('"cloudtrain_attempt": "1"', f'"cloudtrain_attempt": "{number}"')
        )
        client.create(request._replace(native=native))
    client.create(requested(CPU, name="other"))
    service.create(PARENT, {"displayName": "theirs", "jobSpec": {"workerPoolSpecs": [{}]}})
    run_id = request.native["labels"]["cloudtrain_run"]

    of_run = list(client.list(run_id))
    assert {found.run_id for found in of_run} == {run_id}
    assert [found.created for found in of_run] == sorted((found.created for found in of_run), reverse=True)
    assert len(of_run) == 5
    assert next(found.name for found in client.list()).startswith("other-")
    assert len(list(client.list())) == 6
    service.endless = True
    with pytest.raises(UnreachableError, match="the service's list has no end"):
        list(client.list())


def test_a_job_of_another_request_has_the_name(rest: None, service: Service, connect: Connect) -> None:
    client = connect()
    request = requested(CPU)
    client.create(request)
    changed = json.loads(json.dumps(request.native))
    changed["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["env"][-1]["value"] = "0" * 64

    for ask in (client.find, client.create):
        with pytest.raises(RefusedError, match="another custom job is called digits-"):
            ask(request._replace(native=changed))
    assert len(service.jobs) == 1


def test_of_two_jobs_of_one_request_the_one_that_goes_on_is_taken(
    rest: None, service: Service, connect: Connect
) -> None:
    request = requested(CPU)
    for number in range(3):
        service.create(PARENT, request.native)["state"] = "JOB_STATE_RUNNING"
        if number != 1:
            service.jobs[list(service.jobs)[-1]] |= {"state": "JOB_STATE_FAILED", "endTime": "2026-11-30T10:10:00Z"}

    found = connect().find(request)

    assert found and found.native_id.endswith(list(service.jobs)[1])


def test_stop(either: str, service: Service, connect: Connect) -> None:
    client = connect()
    made = client.create(requested(CPU))

    client.stop(made.native_id)
    assert client.describe(made.native_id).state is State.STOPPING
    client.stop(made.native_id)

    next(iter(service.jobs.values())).update(state="JOB_STATE_CANCELLED", endTime="2026-11-30T10:06:00Z")
    client.stop(made.native_id)
    assert client.describe(made.native_id).state is State.STOPPED


def test_there_is_no_such_job(either: str, service: Service, connect: Connect) -> None:
    client = connect()
    for ask in (
        client.describe,
        client.stop,
        lambda name: client.logs(name, {}),
        lambda name: list(client.artefacts(name)),
    ):
        with pytest.raises(RefusedError, match="The CustomJob 42 does not exist"):
            ask(f"{PARENT}/customJobs/42")


def test_jobs_have_several_names(rest: None, service: Service, connect: Connect) -> None:
    client = connect()
    request = requested(CPU)
    made = client.create(request)
    number = made.native_id.rpartition("/")[2]

    assert client.native_id(made.native_id) == made.native_id
    assert client.native_id(request.name) == made.native_id
    assert client.describe(client.native_id(number)) == made


@pytest.mark.parametrize("name", ["", "a/b", "x" * 129, "a\nb", "projects/p/locations/r/customJobs/x"])
def test_what_is_no_name_of_a_job(name: str, rest: None, service: Service, connect: Connect) -> None:
    with pytest.raises(SpecError, match="is no custom job's number"):
        connect().native_id(name)
    assert not service.calls


def test_names_of_no_job(rest: None, service: Service, connect: Connect) -> None:
    with pytest.raises(NotFoundError, match="there is no custom job 'nobody' in projects/my-project"):
        connect().native_id("nobody")
    with pytest.raises(SpecError, match="is not in europe-west4"):
        connect().native_id("projects/1/locations/us-central1/customJobs/7")


def test_without_credentials(connect: Connect) -> None:
    with pytest.raises(MissingError, match="no usable credentials") as error:
        connect().describe(f"{PARENT}/customJobs/1")
    assert "gcloud auth application-default login" in str(error.value)


def test_a_key_file_that_is_not_there(connect: Connect, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(MissingError, match=r"none\.json was not found"):
        list(connect().list())


def test_an_endpoint_that_is_none(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDTRAIN_ENDPOINT_VERTEX", "localhost:80")
    with pytest.raises(SpecError, match="must begin with http://, grpc:// or https://"):
        list(connect().list())


@pytest.mark.parametrize("account", [{}, {"project": "p"}, {"project": "p", "region": ""}])
def test_an_account_that_is_not_complete(account: dict[str, Any]) -> None:
    from cloudtrain.providers import registry

    with pytest.raises(MissingError, match=r"vertex\.(project|region) is not set"):
        registry.connect("vertex", account)
