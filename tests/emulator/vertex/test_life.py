"""Jobs from create to the end: real processes, polled with Google's client."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.emulator.vertex.clients import until
from tests.emulator.vertex.conftest import Opened, opened
from tests.emulator.vertex.scripts import has, play, text

ORDER = ["QUEUED", "PENDING", "RUNNING", "SUCCEEDED"]


def test_a_job_that_succeeds(vertex: Opened) -> None:
    clients = vertex.clients
    script = "print('ready', flush=True); until('go'); (ours / 'model').write_text('weights'); print('done')"
    job = play(clients, "succeeds", script)
    seen = ["QUEUED"]

    def look() -> str:
        state = clients.state(job.name)
        if state != seen[-1]:
            seen.append(state)
        return state

    until(look, lambda state: state == "RUNNING")
    until(lambda: clients.lines(job.name, "workerpool0-0"), lambda lines: lines == ["ready"])
    running = clients.jobs.get_custom_job(name=job.name)
    assert "start_time" in running
    assert "end_time" not in running
    clients.bucket.blob("succeeds/go").upload_from_string("")
    until(look, lambda state: state == "SUCCEEDED")
    assert [state for state in ORDER if state in seen] == seen
    ended = clients.jobs.get_custom_job(name=job.name)
    assert ended.create_time < ended.start_time < ended.end_time == ended.update_time
    assert not ended.error.code
    assert text(clients, "succeeds", "model") == "weights"
    assert clients.lines(job.name, "workerpool0-0") == ["ready", "done"]
    assert clients.lines(job.name, "service") == [
        "Waiting for job to be provisioned.",
        "Vertex AI is provisioning job running framework. First time usage might take couple of minutes, and "
        "subsequent runs can be much faster.",
        "Vertex AI is setting up this job.",
        "Waiting for training program to start.",
        "Job is preparing.",
        "Job is running.",
        "Tearing down training program.",
        "Finished tearing down training program.",
        "Job completed successfully.",
    ]


def test_what_the_containers_find(vertex: Opened) -> None:
    script = "(ours / f\"env-{task['type']}\").write_text(json.dumps(dict(os.environ)))"
    job = play(vertex.clients, "finds", f"{script}\nif primary: until('env-workerpool1')", nodes=2)
    assert vertex.clients.ended(job.name).state.name == "JOB_STATE_SUCCEEDED"
    first, second = (json.loads(text(vertex.clients, "finds", f"env-workerpool{pool}")) for pool in (0, 1))
    assert first["CLOUD_ML_JOB_ID"] == second["CLOUD_ML_JOB_ID"] == job.name.rpartition("/")[2]
    assert [json.loads(env["CLUSTER_SPEC"])["task"]["type"] for env in (first, second)] == [
        "workerpool0",
        "workerpool1",
    ]
    hosts = [json.loads(env["CLUSTER_SPEC"])["cluster"] for env in (first, second)]
    assert hosts[0] == hosts[1]
    assert [env["RANK"] for env in (first, second)] == ["0", "1"]


def test_a_script_that_fails(vertex: Opened) -> None:
    job = play(vertex.clients, "fails", "start(); print('ValueError: no such column'); sys.exit(1)")
    ended = vertex.clients.ended(job.name)
    assert ended.state.name == "JOB_STATE_FAILED"
    assert ended.error.code == 3
    words = "The replica workerpool0-0 exited with a non-zero status of 1. Termination reason: Error."
    assert ended.error.message.startswith(words)
    assert "ValueError: no such column" in ended.error.message
    assert text(vertex.clients, "fails", "starts-workerpool0-0") == "x"
    last = vertex.clients.entries(job.name, "service")[-1]
    assert (last.severity, last.payload["message"]) == ("ERROR", ended.error.message)


def test_the_error_is_set_later_than_the_state(tmp_path: Path) -> None:
    """A minute, says Google."""
    with opened(tmp_path / "slower", speed=10_000.0) as vertex:
        assert vertex.clients.ended(play(vertex.clients, "a", "sys.exit(1)").name).error.code == 3
    with opened(tmp_path / "slow", speed=1.0) as vertex:
        job = play(vertex.clients, "b", "")
        vertex.clients.jobs.cancel_custom_job(name=job.name)
        ended = vertex.clients.until(job.name, lambda job: "end_time" in job)
        assert ended.state.name == "JOB_STATE_CANCELLED"
        assert not ended.error.code


def test_a_worker_that_fails_ends_the_job(vertex: Opened) -> None:
    script = "until('never') if primary else sys.exit(3)"
    ended = vertex.clients.ended(play(vertex.clients, "worker-fails", script, nodes=3).name)
    assert ended.state.name == "JOB_STATE_FAILED"
    assert ended.error.message.startswith("The replica workerpool1-")
    assert "exited with a non-zero status of 3." in ended.error.message


def test_the_primary_replica_decides(vertex: Opened) -> None:
    """When it is done the others are told to end, and whatever they exit with does not count."""
    script = (
        "def told(*_): (ours / 'told').touch(); sys.exit(5)\n"
        "signal.signal(signal.SIGTERM, told)\n"
        "if primary: until('waits')\n"
        "else: (ours / 'waits').touch(); until('never')"
    )
    ended = vertex.clients.ended(play(vertex.clients, "decides", script, nodes=2).name)
    assert ended.state.name == "JOB_STATE_SUCCEEDED"
    assert has(vertex.clients, "decides", "told")


@pytest.mark.parametrize(("status", "scheduling", "starts"), [(139, {}, 4), (139, {"disableRetries": True}, 1)])
def test_a_job_is_tried_again(vertex: Opened, status: int, scheduling: dict[str, Any], starts: int) -> None:
    name = f"again-{starts}"
    ended = vertex.clients.ended(play(vertex.clients, name, f"start(); os._exit({status})", **scheduling).name)
    assert "exited with a non-zero status of 139" in ended.error.message
    assert text(vertex.clients, name, "starts-workerpool0-0") == "x" * starts


def test_a_restart_may_succeed(vertex: Opened) -> None:
    """143 is what launch.py leaves with when another node is gone."""
    job = play(vertex.clients, "restart", "number = start(); print(number); sys.exit(143 if number < 3 else 0)")
    assert vertex.clients.ended(job.name).state.name == "JOB_STATE_SUCCEEDED"
    assert vertex.clients.lines(job.name, "workerpool0-0") == ["1", "2", "3"]


def test_cancel(vertex: Opened) -> None:
    script = (
        "def saved(*_): print('saved', flush=True); sys.exit(143)\n"
        "signal.signal(signal.SIGTERM, saved)\n"
        "print('running', flush=True); until('never')"
    )
    job = play(vertex.clients, "cancel", script, nodes=2)
    until(lambda: vertex.clients.lines(job.name), lambda lines: lines.count("running") == 2)
    vertex.clients.jobs.cancel_custom_job(name=job.name)
    assert vertex.clients.state(job.name) in ("CANCELLING", "CANCELLED")
    vertex.clients.jobs.cancel_custom_job(name=job.name)
    ended = vertex.clients.ended(job.name)
    assert (ended.state.name, ended.error.code) == ("JOB_STATE_CANCELLED", 1)
    for task in ("workerpool0-0", "workerpool1-0"):
        assert vertex.clients.lines(job.name, task) == ["running", "saved"]


def test_timeout(vertex: Opened) -> None:
    """In real seconds: it is the job's own time."""
    ended = vertex.clients.ended(play(vertex.clients, "timeout", "until('never')", timeout="0.5s").name)
    assert ended.state.name == "JOB_STATE_CANCELLED"
    assert "exceeded its timeout" in ended.error.message


def test_code_that_was_not_uploaded(vertex: Opened) -> None:
    job = vertex.clients.create(_without_code())
    ended = vertex.clients.ended(job.name)
    assert "exited with a non-zero status of 2" in ended.error.message
    assert vertex.clients.lines(job.name, "workerpool0-0") == [
        "python3: can't open file '/gcs/cloudtrain-emulator/nowhere/launch.py': [Errno 2] No such file or directory"
    ]


def _without_code() -> Any:
    from tests.emulator.vertex.requests import changed, custom_job

    path = ("jobSpec", "workerPoolSpecs", 0, "containerSpec", "command")
    return changed(custom_job("no-code"), path, ["python3", "-u", "/gcs/cloudtrain-emulator/nowhere/launch.py"])


def test_a_container_that_is_not_ours(vertex: Opened) -> None:
    from tests.emulator.vertex.requests import changed, custom_job

    path = ("jobSpec", "workerPoolSpecs", 0, "containerSpec")
    job = vertex.clients.create(changed(custom_job("other"), path, {"imageUri": "python:3.12", "args": ["--x"]}))
    ended = vertex.clients.ended(job.name)
    assert ended.state.name == "JOB_STATE_FAILED"
    assert "launch.py of cloudtrain" in ended.error.message


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    script = "signal.signal(signal.SIGTERM, signal.SIG_IGN); print(os.getpid(), flush=True); until('never')"
    with opened(tmp_path / "left") as vertex:
        jobs = [play(vertex.clients, f"left-{number}", script) for number in range(3)]
        pids = [int(until(lambda name=job.name: vertex.clients.lines(name, "workerpool0-0"), bool)[0]) for job in jobs]
        assert all(psutil.pid_exists(pid) for pid in pids)
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert not [child for child in psutil.Process().children() if str(tmp_path) in " ".join(child.cmdline())]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("custom job")]
