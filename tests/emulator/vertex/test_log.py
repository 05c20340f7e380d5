"""Cloud Logging by Google's client, and read on from a place as gcloud does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.vertex.clients import until
from tests.emulator.vertex.conftest import Opened
from tests.emulator.vertex.scripts import play

_SCRIPT = """
print("plain")
print('{"message": "structured", "severity": "WARNING", "loss": 0.5}')
print('{"half": ')
sys.stdout.buffer.write(b"not utf-8: \\xff\\n")
print("\\x1b[31mred\\x1b[0m\\ttab")
print("")
print("no end", end="", flush=True)
until("printed") if primary else (ours / "printed").touch()
"""


@pytest.fixture(scope="module")
def job(vertex: Opened) -> Any:
    """One that has printed all kinds of lines."""
    made = play(vertex.clients, "prints", _SCRIPT, nodes=2)
    return vertex.clients.ended(made.name)


def test_entries(vertex: Opened, job: Any) -> None:
    entries = vertex.clients.entries(job.name, "workerpool0-0")
    assert [entry.payload for entry in entries] == [
        {"message": "plain"},
        {"message": "structured", "loss": 0.5},
        {"message": '{"half": '},
        {"message": "not utf-8: \ufffd"},
        {"message": "\x1b[31mred\x1b[0m\ttab"},
        {"message": ""},
        {"message": "no end"},
    ]
    assert [entry.severity for entry in entries[:2]] == ["INFO", "WARNING"]
    assert entries[0].resource.type == "ml_job"
    labels = entries[0].resource.labels
    assert (labels["job_id"], labels["task_name"]) == (job.name.rpartition("/")[2], "workerpool0-0")
    assert job.create_time <= entries[0].timestamp <= job.end_time
    assert len({entry.insert_id for entry in entries}) == len(entries)


def test_reading_on_as_gcloud_does(vertex: Opened, job: Any) -> None:
    """From a timestamp and an insertId, page by page, all tasks in one: nothing twice, nothing left out."""
    wanted = f'resource.type="ml_job" AND resource.labels.job_id="{job.name.rpartition("/")[2]}"'
    place = f'timestamp>="{job.create_time.rfc3339()}"'
    found: list[Any] = []
    while True:
        page = _entries(vertex, f"{wanted} AND {place}", size=5)
        if not page:
            break
        found += page
        time, number = page[-1]["timestamp"], page[-1]["insertId"]
        place = f'((timestamp="{time}" AND insertId>"{number}") OR timestamp>"{time}")'
    everything = _entries(vertex, f'{wanted} AND timestamp>="2000-01-01T00:00:00Z"', size=1000)
    assert found == everything
    tasks = [entry["resource"]["labels"]["task_name"] for entry in found]
    assert (tasks.count("workerpool0-0"), tasks.count("workerpool1-0"), tasks.count("service")) == (7, 7, 9)


def test_newest_first(vertex: Opened, job: Any) -> None:
    wanted = f'resource.labels.job_id="{job.name.rpartition("/")[2]}" AND timestamp>="2000-01-01T00:00:00Z"'
    oldest = _entries(vertex, wanted, size=1000)
    assert _entries(vertex, wanted, size=1000, order="timestamp desc") == oldest[::-1]


def test_another_project_has_other_entries(vertex: Opened, job: Any) -> None:
    wanted = 'resource.type="ml_job" AND timestamp>="2000-01-01T00:00:00Z"'
    assert not _entries(vertex, wanted, size=5, project="another")


def test_a_running_job_is_read_while_it_runs(vertex: Opened) -> None:
    job = play(vertex.clients, "runs", "print('first', flush=True); until('go'); print('second')")
    until(lambda: vertex.clients.lines(job.name, "workerpool0-0"), lambda lines: lines == ["first"])
    vertex.clients.bucket.blob("runs/go").upload_from_string("")
    vertex.clients.ended(job.name)
    assert vertex.clients.lines(job.name, "workerpool0-0") == ["first", "second"]


@pytest.mark.parametrize(
    "body", [{"filter": "(("}, {"orderBy": "severity"}, {"pageToken": "none of ours"}, {"resourceNames": []}]
)
def test_calls_that_are_refused(vertex: Opened, body: dict[str, Any]) -> None:
    from google.api_core.exceptions import BadRequest

    with pytest.raises(BadRequest):
        vertex.clients.logs._connection.api_request(
            method="POST", path="/entries:list", data={"resourceNames": ["projects/my-project"], **body}
        )


def _entries(
    vertex: Opened, wanted: str, *, size: int, order: str = "timestamp asc", project: str = "my-project"
) -> list[Any]:
    data = {"resourceNames": [f"projects/{project}"], "filter": wanted, "orderBy": order, "pageSize": size}
    found = vertex.clients.logs._connection.api_request(method="POST", path="/entries:list", data=data)
    entries: list[Any] = found.get("entries", [])
    return entries
