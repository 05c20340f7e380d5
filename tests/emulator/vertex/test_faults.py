"""What goes wrong on purpose: jobs that get no machines, or lose them, and a log that is not in order."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.emulator.vertex.clients import PARENT, until
from tests.emulator.vertex.conftest import Opened, opened
from tests.emulator.vertex.requests import custom_job
from tests.emulator.vertex.scripts import play, text

Faulty = Callable[[str], Opened]

# Ends well on the second start, or when it is told to end.
_SAVES = (
    "def saved(*_): print('saved', flush=True); sys.exit(143)\n"
    "signal.signal(signal.SIGTERM, saved)\n"
    "number = start(); print('start', number, flush=True)\n"
    "if number == 1: until('never')"
)


def test_no_quota(faulty: Faulty) -> None:
    from google.api_core.exceptions import TooManyRequests

    vertex = faulty("jobs: [{name: 'greedy*', fault: quota}]")
    metric = "aiplatform.googleapis.com/custom_model_training_nvidia_l4_gpus"
    with pytest.raises(TooManyRequests, match=f"The following quota metrics exceed quota limits: {metric}"):
        vertex.clients.create(custom_job("greedy-1"))
    metric = "aiplatform.googleapis.com/custom_model_training_preemptible_nvidia_l4_gpus"
    with pytest.raises(TooManyRequests, match=metric):
        vertex.clients.create(custom_job("greedy-2", strategy="SPOT"))
    assert not list(vertex.clients.jobs.list_custom_jobs(parent=PARENT))
    assert [body["displayName"] for body in vertex.plane.requests] == ["greedy-1", "greedy-2"]


def test_no_machines_and_no_image(faulty: Faulty) -> None:
    vertex = faulty("jobs: [{name: big, fault: capacity}, {name: bare, fault: image-missing}]")
    big, bare = (vertex.clients.create(custom_job(name)) for name in ("big", "bare"))
    ended = vertex.clients.ended(big.name)
    assert (ended.state.name, ended.error.code) == ("JOB_STATE_FAILED", 8)
    assert ended.error.message == (
        "Resources are insufficient in region: europe-west4. Try a different region or use a different accelerator."
    )
    assert "start_time" not in ended
    ended = vertex.clients.ended(bare.name)
    assert ended.state.name == "JOB_STATE_FAILED"
    assert "europe-docker.pkg.dev/my-project/images/train:1" in ended.error.message


@pytest.mark.parametrize(("fault", "saved"), [("preempt", ["saved"]), ("preempt-without-notice", [])])
def test_a_preempted_job_is_started_again(faulty: Faulty, fault: str, saved: list[str]) -> None:
    vertex = faulty(f"jobs: [{{fault: {fault}, at: 2.5s}}]")
    job = play(vertex.clients, "spot", _SAVES, strategy="SPOT")
    assert vertex.clients.ended(job.name).state.name == "JOB_STATE_SUCCEEDED"
    assert vertex.clients.lines(job.name, "workerpool0-0") == ["start 1", *saved, "start 2"]


def test_who_watches_sees_that_a_job_waits_for_machines_again(tmp_path: Path) -> None:
    """However little time that takes here, and however rarely they look."""
    with opened(tmp_path / "fast", "jobs: [{fault: preempt-without-notice, at: 2.5s}]", speed=1e6) as vertex:
        job = play(vertex.clients, "again", "if start() == 1: until('never')")
        vertex.clients.until(job.name, lambda found: found.state.name == "JOB_STATE_RUNNING")

        def looked_at_rarely() -> Any:
            time.sleep(2.0)
            return vertex.clients.jobs.get_custom_job(name=job.name)

        until(looked_at_rarely, lambda found: found.state.name == "JOB_STATE_PENDING")
        assert vertex.clients.ended(job.name).state.name == "JOB_STATE_SUCCEEDED"


def test_a_preempted_job_without_retries(faulty: Faulty) -> None:
    vertex = faulty("jobs: [{fault: preempt-without-notice, at: 0.2s}]")
    job = play(vertex.clients, "spot", "until('never')", strategy="SPOT", disableRetries=True)
    assert vertex.clients.ended(job.name).error.message.startswith("Resources are insufficient in region")


def test_a_lost_node(faulty: Faulty) -> None:
    vertex = faulty("jobs: [{fault: lose-node, node: 1, at: 2.5s}]")
    script = f"{_SAVES}\nelse: until('second') if primary else (ours / 'second').touch()"
    job = play(vertex.clients, "lost", script, nodes=2)
    assert vertex.clients.ended(job.name).state.name == "JOB_STATE_SUCCEEDED"
    assert text(vertex.clients, "lost", "starts-workerpool1-0") == "xx"
    assert vertex.clients.lines(job.name, "workerpool1-0")[:2] == ["start 1", "start 2"]
    assert vertex.clients.lines(job.name, "workerpool0-0") == ["start 1", "saved", "start 2"]


def test_a_state_that_nobody_knows(faulty: Faulty) -> None:
    vertex = faulty("jobs: [{fault: unknown-state, state: Hibernating}]")
    job = play(vertex.clients, "odd", "until('go')")
    seen: list[int] = []

    def look() -> int:
        found = vertex.clients.jobs.get_custom_job(name=job.name)
        seen.append(type(found).pb(found).state)  # proto-plus warns of a number that it does not know
        return len([state for state in seen if state == 3])

    until(look, lambda running: running >= 2)
    vertex.clients.bucket.blob("odd/go").upload_from_string("")
    vertex.clients.ended(job.name)
    assert [state for state in seen if state not in (1, 2)] == [3, 99, 99, 99, 3]


LINES = 60
_PRINTS = f"for number in range({LINES}): print(number, flush=True)"


def test_empty_pages(faulty: Faulty) -> None:
    vertex = faulty("logs: [{fault: empty-pages}]")
    job = play(vertex.clients, "pages", _PRINTS)
    vertex.clients.ended(job.name)
    body = {
        "resourceNames": ["projects/my-project"],
        "filter": 'resource.labels.task_name="workerpool0-0" AND timestamp>="2000-01-01T00:00:00Z"',
        "orderBy": "timestamp asc",
        "pageSize": 25,
    }
    sizes, lines, token = [], [], ""
    while True:
        page = vertex.clients.logs._connection.api_request(
            method="POST", path="/entries:list", data={**body, "pageToken": token}
        )
        sizes.append(len(page.get("entries", [])))
        lines += [entry["jsonPayload"]["message"] for entry in page.get("entries", [])]
        if not (token := page.get("nextPageToken", "")):
            break
    assert sizes == [0, 25, 0, 25, 0, 10]
    assert lines == [str(number) for number in range(LINES)]


@pytest.mark.parametrize("fault", ["late", "out-of-order"])
def test_lines_that_come_after_the_end(faulty: Faulty, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_LATE_SECONDS", "_OVERTAKEN_SECONDS"):  # so late that the end comes before them on any machine
        monkeypatch.setattr(f"cloudtrain.emulator.vertex.logs.{name}", 6.0)
    vertex = faulty(f"logs: [{{fault: {fault}}}]")
    job = play(vertex.clients, "late", f"{_PRINTS}\ntime.sleep(0.5); print('end')")
    ended = vertex.clients.until(job.name, lambda found: "end_time" in found)
    first = vertex.clients.lines(job.name, "workerpool0-0")
    assert first != [*map(str, range(LINES)), "end"]
    until(lambda: vertex.clients.lines(job.name, "workerpool0-0"), lambda lines: len(lines) == LINES + 1)
    entries = vertex.clients.entries(job.name, "workerpool0-0")
    assert [entry.payload["message"] for entry in entries] == [*map(str, range(LINES)), "end"]
    assert all(entry.timestamp <= ended.end_time for entry in entries)
