"""The calls of JobService, by Google's client."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.emulator.vertex.clients import PARENT
from tests.emulator.vertex.conftest import Opened, opened
from tests.emulator.vertex.requests import custom_job


@pytest.fixture(scope="module")
def vertex(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """As slow as the service: jobs are queued for longer than these tests take."""
    with opened(tmp_path_factory.mktemp("calls") / "slow", speed=1.0) as found:
        yield found


@pytest.fixture
def ended(vertex: Opened, request: pytest.FixtureRequest) -> list[Any]:
    """Five jobs that are over, all with one name."""
    name = request.node.name.replace("_", "-")[:60]
    jobs = [vertex.clients.create(custom_job(name)) for _ in range(5)]
    for job in jobs:
        vertex.clients.jobs.cancel_custom_job(name=job.name)
    return [vertex.clients.until(job.name, lambda job: "end_time" in job) for job in jobs]


def _listed(vertex: Opened, **request: Any) -> list[str]:
    return [job.name for job in vertex.clients.jobs.list_custom_jobs({"parent": PARENT, **request})]


def test_a_create_is_not_idempotent(ended: list[Any]) -> None:
    ids = [job.name.rpartition("/")[2] for job in ended]
    assert len(set(ids)) == 5
    assert all(found.isdecimal() and len(found) == 19 for found in ids)
    assert {job.name.rpartition("/")[0] for job in ended} == {f"{PARENT}/customJobs"}


def test_the_answer_is_what_was_asked_for(vertex: Opened) -> None:
    sent = custom_job("as-asked", nodes=3, env={"EMPTY": "", "LETTERS": "ü\n$$(A)"}, strategy="SPOT")
    job = vertex.clients.create(sent)
    vertex.clients.jobs.cancel_custom_job(name=job.name)
    assert job.state.name == "JOB_STATE_QUEUED"
    assert dict(job.labels) == sent["labels"]
    assert [pool.replica_count for pool in job.job_spec.worker_pool_specs] == [1, 2]
    machine = job.job_spec.worker_pool_specs[1].machine_spec
    assert (machine.accelerator_type.name, machine.accelerator_count) == ("NVIDIA_L4", 1)
    assert job.job_spec.scheduling.timeout == timedelta(hours=1)
    env = {item.name: item.value for item in job.job_spec.worker_pool_specs[0].container_spec.env}
    assert env.items() >= {"EMPTY": "", "LETTERS": "ü\n$$(A)"}.items()
    received = vertex.plane.requests[-1]
    assert received["jobSpec"]["workerPoolSpecs"][0] == {
        **sent["jobSpec"]["workerPoolSpecs"][0],
        "containerSpec": {
            **sent["jobSpec"]["workerPoolSpecs"][0]["containerSpec"],
            "env": [
                item if item["value"] else {"name": item["name"]}
                for item in sent["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["env"]
            ],
        },
    }


def test_pages(vertex: Opened, ended: list[Any]) -> None:
    wanted = f'display_name="{ended[0].display_name}"'
    pages = list(vertex.clients.jobs.list_custom_jobs({"parent": PARENT, "filter": wanted, "page_size": 2}).pages)
    assert [[job.name for job in page.custom_jobs] for page in pages] == [
        [ended[4].name, ended[3].name],
        [ended[2].name, ended[1].name],
        [ended[0].name],
    ]


def test_filters(vertex: Opened, ended: list[Any]) -> None:
    name, mine = ended[0].display_name, [job.name for job in reversed(ended)]
    moment = ended[2].create_time.rfc3339()
    ours = f'labels.cloudtrain_run="{name}-run"'
    assert _listed(vertex, filter=ours) == mine
    assert _listed(vertex, filter=f"{ours} AND labels.team:*") == mine
    assert _listed(vertex, filter=f'{ours} AND labels.team="speech"') == []
    assert _listed(vertex, filter=f"{ours} AND labels.nobody:*") == []
    assert _listed(vertex, filter=f'display_name:"{name[:-3]}*" AND state="JOB_STATE_CANCELLED"') == mine
    assert _listed(vertex, filter=f"{ours} AND NOT state=JOB_STATE_CANCELLED") == []
    assert _listed(vertex, filter=f'{ours} AND create_time>="{moment}"') == mine[:3]
    assert _listed(vertex, filter=f'{ours} AND create_time<"{moment}"') == mine[3:]


def test_a_filter_by_something_else(vertex: Opened, ended: list[Any]) -> None:
    from google.api_core.exceptions import BadRequest

    with pytest.raises(BadRequest):
        _listed(vertex, filter='colour="red"')
    with pytest.raises(BadRequest):
        _listed(vertex, page_token="none of ours")


def test_another_region_has_other_jobs(vertex: Opened, ended: list[Any]) -> None:
    from google.api_core.exceptions import NotFound

    elsewhere = ended[0].name.replace("europe-west4", "us-central1")
    with pytest.raises(NotFound):
        vertex.clients.jobs.get_custom_job(name=elsewhere)
    parent = elsewhere.partition("/customJobs")[0]
    assert not list(vertex.clients.jobs.list_custom_jobs(parent=parent))


def test_delete(vertex: Opened, ended: list[Any]) -> None:
    from google.api_core.exceptions import NotFound

    vertex.clients.jobs.delete_custom_job(name=ended[0].name).result(timeout=10)
    for call in (vertex.clients.jobs.get_custom_job, vertex.clients.jobs.cancel_custom_job):
        with pytest.raises(NotFound):
            call(name=ended[0].name)
    assert ended[0].name not in _listed(vertex)


def test_a_job_that_is_not_over_cannot_be_deleted(vertex: Opened) -> None:
    from google.api_core.exceptions import BadRequest

    job = vertex.clients.create(custom_job("not-over"))
    with pytest.raises(BadRequest, match="cancel it first"):
        vertex.clients.jobs.delete_custom_job(name=job.name)
    vertex.clients.jobs.cancel_custom_job(name=job.name)


def test_cancelling_what_is_over_changes_nothing(vertex: Opened, ended: list[Any]) -> None:
    vertex.clients.jobs.cancel_custom_job(name=ended[0].name)
    assert vertex.clients.jobs.get_custom_job(name=ended[0].name) == ended[0]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_names_or_numbers_of_enums(vertex: Opened, version: str) -> None:
    """gcloud asks for names, by v1beta1 in part; Google's Python client for numbers."""
    parent = f"{vertex.url}/{version}/{PARENT}/customJobs"
    body = json.dumps(custom_job("by-hand")).encode()
    made = _json(urllib.request.Request(f"{parent}?%24alt=json%3Benum-encoding%3Dint", data=body))
    assert made["state"] == 1
    job = f"{vertex.url}/{version}/{made['name']}"
    assert _json(urllib.request.Request(f"{job}:cancel", data=b"")) == {}
    assert _json(f"{job}?alt=json")["state"] in ("JOB_STATE_CANCELLING", "JOB_STATE_CANCELLED")
    shown = _json(f"{parent}?filter=display_name%3Dby-hand&readMask=name,state&pageSize=1")["customJobs"][0]
    assert shown.keys() == {"name", "state"}


@pytest.mark.parametrize(
    ("path", "method", "status", "code"),
    [
        (f"/v1/{PARENT}/endpoints", "GET", 404, "NOT_FOUND"),
        (f"/v1/{PARENT}/customJobs", "PUT", 405, "METHOD_NOT_ALLOWED"),
        (f"/v1/{PARENT}/customJobs/12", "GET", 404, "NOT_FOUND"),
        (f"/v1/{PARENT}/customJobs?pageSize=many", "GET", 400, "INVALID_ARGUMENT"),
        ("/v1/projects/P!/locations/nowhere/customJobs", "GET", 400, "INVALID_ARGUMENT"),
    ],
)
def test_errors_have_googles_form(vertex: Opened, path: str, method: str, status: int, code: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(urllib.request.Request(f"{vertex.url}{path}", method=method))
    with refusal.value as answer:
        error = json.loads(answer.read())["error"]
    assert (refusal.value.code, error["code"], error["status"]) == (status, status, code)
    assert error["message"]


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    [
        ("POST", f"/v1/{PARENT}/customJobs", "CreateCustomJob"),
        ("GET", f"/v1/{PARENT}/customJobs", "ListCustomJobs"),
        ("GET", f"/v1/{PARENT}/customJobs/1", "GetCustomJob"),
        ("POST", f"/v1/{PARENT}/customJobs/1:cancel", "CancelCustomJob"),
        ("DELETE", f"/v1/{PARENT}/customJobs/1", "DeleteCustomJob"),
        ("POST", "/v2/entries:list", "ListLogEntries"),
        ("GET", "/v1/nothing", ""),
    ],
)
def test_names_of_calls(vertex: Opened, method: str, path: str, operation: str) -> None:
    from werkzeug.test import create_environ

    assert vertex.plane.operation(create_environ(path, method=method)) == operation


def _json(call: urllib.request.Request | str) -> Any:
    with urllib.request.urlopen(call) as answer:
        return json.loads(answer.read())
