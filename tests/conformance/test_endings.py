"""How runs end, on every cloud: stopped, taken away, lost, too late, refused, failed; by commands, as users see it."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cloudtrain.emulator import Emulator
from cloudtrain.emulator.faultfile import load
from cloudtrain.emulator.faults import CallFault, Faults
from tests.conformance import scripts
from tests.conformance.backend import CLOUDS, Backend, Going, Result, job_file

SPEED = 120.0
FAULTS = """
jobs:
  - {name: "twice-*", fault: preempt, at: 1s, times: 2}
  - {name: "taken-*", fault: preempt-without-notice, at: 0s, times: 50}
  - {name: "lost-*", fault: lose-node, node: 1, at: 1s}
  - {name: "gone-*", fault: lose-node, node: 1, at: 1s}
  - {name: "image-*", fault: image-missing}
  - {name: "quota-*", provider: sagemaker, fault: quota, times: 1}
  - {name: "quota-*", provider: vertex, fault: quota, times: 1}
  - {name: "quota-*", provider: azureml, fault: quota, times: 1}
  - {name: "capacity-*", fault: capacity}
"""
STORM = """
calls:
  - {operation: CREATE, fault: throttle, times: 2}
  - {operation: CREATE, fault: error, status: 503}
  - {operation: CREATE, fault: lost}
  - {operation: "*", fault: throttle, share: 0.1}
  - {operation: "*", fault: error, status: 503, share: 0.1}
"""
NO_CREATE = """
calls:
  - {operation: CREATE, fault: error, status: 503, times: 1000}
"""
LOST = """
calls:
  - {operation: CREATE, fault: lost}
"""
NO_ANSWER = """
calls:
  - {operation: "*", fault: error, status: 503, times: 1000}
"""
CREATE = {"sagemaker": "CreateTrainingJob", "vertex": "CreateCustomJob", "azureml": "Jobs_CreateOrUpdate"}
LINES = 5_000

SPOT = {"spot": {"enabled": True}}
JOBS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "twice": (scripts.PREEMPTABLE, SPOT),
    "taken": (scripts.PREEMPTABLE, SPOT),
    "lost": (scripts.PREEMPTABLE, {}),
    "gone": (scripts.PREEMPTABLE, {"retries": {"preemption": 0}}),
    "late": (scripts.LONG, {"limits": {"runtime": "2s"}}),
    "image": (scripts.QUIET, {}),
    "capacity": (scripts.QUIET, {}),
    "fails": (scripts.RAISING, {}),
}
"""The job's name -> its script and fields."""


class End(NamedTuple):
    """What has to be told of the end of a run."""

    state: str
    cause: str
    reason: str
    """In the service's own reason."""
    advice: str
    """In what is said to do next."""
    code: int = 1


AGAIN = "cloudtrain resume "
SUCCEEDED = End("SUCCEEDED", "", "", "cloudtrain download ", 0)
ENDS: Mapping[str, Mapping[str, End]] = {
    "twice": dict.fromkeys(CLOUDS, SUCCEEDED),
    "taken": {
        "sagemaker": End("TIMED_OUT", "timeout", "", AGAIN),
        "vertex": End("PREEMPTED", "preempted", "insufficient", AGAIN, 143),
        "azureml": End("PREEMPTED", "preempted", "pre-empted", AGAIN, 143),
    },
    "lost": {
        "sagemaker": SUCCEEDED,
        "vertex": SUCCEEDED,
        "azureml": End("FAILED", "node-lost", "node 1", AGAIN),
    },
    "gone": {
        "sagemaker": End("FAILED", "infrastructure", "InternalServerError", AGAIN),
        "vertex": End("FAILED", "infrastructure", "Internal error", AGAIN),
        "azureml": End("FAILED", "node-lost", "node 1", AGAIN),
    },
    "late": {
        "sagemaker": End("TIMED_OUT", "timeout", "", "limits.runtime"),
        "vertex": End("TIMED_OUT", "timeout", "2s", "limits.runtime"),
        "azureml": End("TIMED_OUT", "timeout", "time limit", "limits.runtime"),
    },
    "image": dict.fromkeys(CLOUDS, End("FAILED", "image", "image", "environment.image")),
    "capacity": dict.fromkeys(CLOUDS, End("FAILED", "capacity", "", "resources.instance")),
    "fails": dict.fromkeys(CLOUDS, End("FAILED", "user-code", "ValueError: the numbers do not add up", AGAIN)),
}


class Weather(Faults):
    """The fault file above for jobs, and for calls what a test wants at that moment."""

    def __init__(self, file: Path) -> None:
        super().__init__(load(file))
        self._calls_of: dict[str, tuple[Faults, Faults]] = {}
        self._heard: set[str] = set()

    def call(self, provider: str, operation: str) -> CallFault | None:
        before, after = self._calls_of.get(provider, (Faults.none(), Faults.none()))
        found = (after if provider in self._heard else before).call(provider, operation)
        if operation == CREATE[provider]:
            self._heard.add(provider)
        return found

    @contextmanager
    def over(self, provider: str, folder: Path, calls: str, then: str | None = None) -> Iterator[None]:
        """For as long as this lasts. ``then``: from the first create on."""
        file = folder / "calls.yaml"
        file.write_text(calls.replace("CREATE", CREATE[provider]))
        before = after = Faults.load(file)
        if then is not None:
            file.write_text(then)
            after = Faults.load(file)
        self._heard.discard(provider)
        self._calls_of[provider] = (before, after)
        try:
            yield
        finally:
            del self._calls_of[provider]

    def has_heard(self, provider: str) -> bool:
        """Of a create."""
        return provider in self._heard


@pytest.fixture(scope="module")
def weather(tmp_path_factory: pytest.TempPathFactory) -> Weather:
    file = tmp_path_factory.mktemp("faults") / "faults.yaml"
    file.write_text(FAULTS)
    return Weather(file)


@pytest.fixture(scope="module")
def faulty(weather: Weather) -> Iterator[Emulator]:
    with Emulator(CLOUDS, speed=SPEED, faults=weather) as opened:
        yield opened


@pytest.fixture(scope="module", params=CLOUDS)
def cloud(request: pytest.FixtureRequest, faulty: Emulator, tmp_path_factory: pytest.TempPathFactory) -> Backend:
    return Backend(request.param, faulty, tmp_path_factory.mktemp(request.param))


@pytest.fixture(params=["local", *CLOUDS])
def anywhere(request: pytest.FixtureRequest, faulty: Emulator, folder: Path) -> Backend:
    return Backend(request.param, faulty, folder)


@pytest.fixture(scope="module")
def going(cloud: Backend) -> Iterator[Mapping[str, Going]]:
    """All of JOBS, at once."""
    begun = {}
    for name, (script, fields) in JOBS.items():
        if name == "taken" and cloud.provider == "sagemaker":  # which gives up only when all of its time is over
            fields = {"spot": {"enabled": True, "max_wait": "8s"}, "limits": {"runtime": "6s"}}
        job = job_file(cloud.folder / name, script, name=name, **fields)
        begun[name] = cloud.begin(*_submit(cloud), "--follow", "--json", cwd=job.parent)
    yield begun
    for each in begun.values():
        each.close()


def _submit(cloud: Backend) -> tuple[str, ...]:
    return ("submit", "job.yaml", "--provider", cloud.provider)


def _told(ended: Result) -> list[str]:
    """The states, in their order."""
    words = [line.split()[1:] for line in ended.err.splitlines() if line.startswith("cloudtrain: ")]
    return [word[0] for word in words if len(word) == 1 and word[0].isupper()]


@pytest.mark.parametrize("name", JOBS)
def test_an_end_is_told_with_its_reason_its_cause_and_what_to_do(
    going: Mapping[str, Going], cloud: Backend, name: str
) -> None:
    ended, end = going[name].ended(), ENDS[name][cloud.provider]
    assert (ended.json["state"], ended.json["cause"], ended.code) == (end.state, end.cause, end.code), ended.err
    assert ended.json["exit_code"] == end.code
    assert end.reason in (ended.json["reason"] or "")
    last_words = ended.err[ended.err.rindex(f"{end.state} after ") :]
    assert f"exit code {end.code}" in last_words
    assert end.advice in last_words


def test_machines_that_are_taken_away_twice_come_again(going: Mapping[str, Going], cloud: Backend) -> None:
    ended = going["twice"].ended()
    if cloud.provider == "vertex":  # it has no number of restarts, and between two starts lies a second
        assert "RESTARTING" in _told(ended)
    else:
        assert ended.json["restarts"] == 2
    done = [line for line in ended.err.splitlines() if line.endswith("is done")]
    assert sorted(done) == ["[0/0] rank 0 is done", "[1/1] rank 1 is done"]


def test_what_failed_first_is_said_in_one_line(going: Mapping[str, Going], cloud: Backend) -> None:
    ended = going["fails"].ended()
    said = next(line for line in ended.err.splitlines() if line.startswith("failed: "))
    assert "rank 1 on node 1: ValueError: the numbers do not add up" in said


def test_a_quota_refuses_a_submit_and_the_next_one_works(cloud: Backend) -> None:
    job = job_file(cloud.folder / "quota", scripts.QUIET, name="quota")
    refused = cloud.cloudtrain(*_submit(cloud), cwd=job.parent)
    assert refused.code == 4, refused.err
    assert "quota" in refused.err.lower()
    assert "Traceback" not in refused.err
    assert len(refused.err.strip().splitlines()[-1]) > len("cloudtrain: ")  # the hint
    kept = cloud.cloudtrain("runs", "--name", "quota", "--json", cwd=job.parent).json
    assert [(run["state"], run["cause"]) for run in kept] == [("FAILED", "quota")]
    again = cloud.cloudtrain(*_submit(cloud), "--follow", "--json", cwd=job.parent)
    assert (again.code, again.json["state"], again.json["run_id"]) == (0, "SUCCEEDED", kept[0]["run_id"]), again.err


def test_a_storm_of_failing_calls_makes_one_job(cloud: Backend, weather: Weather, tmp_path: Path) -> None:
    job = job_file(cloud.folder / "storm", scripts.QUIET, name="storm")
    with weather.over(cloud.provider, tmp_path, STORM):
        ended = cloud.cloudtrain(*_submit(cloud), "--follow", "--json", cwd=job.parent)
    assert (ended.code, ended.json["state"]) == (0, "SUCCEEDED"), ended.err
    assert _jobs(cloud, ended.json["run_id"]) == 1
    said = [line for line in ended.err.splitlines() if line.endswith("there is nothing to do")]
    assert sorted(said) == ["[0/0] there is nothing to do", "[1/1] there is nothing to do"]


@pytest.mark.parametrize("created", [False, True])
def test_a_submit_that_was_killed_is_repeated(cloud: Backend, weather: Weather, folder: Path, created: bool) -> None:
    name = "cut-after" if created else "cut-before"
    job = job_file(folder / name, scripts.LONG, name=name)
    with weather.over(cloud.provider, folder, *((LOST, NO_ANSWER) if created else (NO_CREATE,))):
        first = cloud.begin(*_submit(cloud), cwd=job.parent)
        first.wait_for(lambda: weather.has_heard(cloud.provider) and _jobs(cloud, name) == created, "create")
        first.signal(signal.SIGKILL)
        assert first.ended().code == -signal.SIGKILL
    run_id = cloud.cloudtrain("runs", "--name", name, "--json").json[0]["run_id"]
    second = cloud.cloudtrain(*_submit(cloud), "--json", cwd=job.parent)
    assert (second.code, second.json["run_id"]) == (0, run_id), second.err
    assert _jobs(cloud, run_id) == 1


def _jobs(cloud: Backend, name: str) -> int:
    """How many jobs whose names begin so there are."""
    asked = [json.dumps(request) for request in cloud.emulator.plane(cloud.provider).requests]  # type: ignore[attr-defined]
    found = [request for request in asked if name in request]
    return len(set(found) if cloud.provider == "sagemaker" else found)  # where a name that is taken is refused


def test_a_run_is_left_stopped_and_gone_on_with(anywhere: Backend) -> None:
    job = job_file(anywhere.folder / "saving", scripts.SAVING, name="saving")
    here = {"cwd": job.parent}
    with closing(anywhere.begin(*_submit(anywhere), "--follow", **here)) as first:
        first.wait_for(lambda: first.out.count("ready") == 2, "both ranks")
        first.signal(signal.SIGINT)
        left = first.ended()
    assert left.code == 130
    (run,) = anywhere.cloudtrain("runs", "--name", "saving", "--json", **here).json
    run_id = run["run_id"]
    assert f"cloudtrain stop {run_id}" in left.err
    assert f"run {run_id} goes on" in left.err
    with closing(anywhere.begin("logs", run_id, "--follow", **here)) as second:
        second.wait_for(lambda: second.out.count("ready") == 2, "both ranks")
        stopped = anywhere.cloudtrain("stop", run_id, "--wait", "--json", **here)
        assert (stopped.code, stopped.json["state"]) == (0, "STOPPED"), stopped.err
        assert second.ended().code == 130
    _fetch(anywhere, run_id, "checkpoints", **here)
    again = anywhere.cloudtrain("resume", run_id, "--follow", "--json", **here)
    assert (again.code, again.json["state"], again.json["attempt"]) == (0, "SUCCEEDED", 2), again.err
    assert again.json["run_id"] == run_id
    found = [line for line in again.err.splitlines() if "attempt 2 found" in line]
    assert sorted(found) == [f"[{rank}/{rank}] attempt 2 found step 7" for rank in range(2)]
    _fetch(anywhere, run_id, "model", **here)


def _fetch(where: Backend, run_id: str, kind: str, cwd: Path) -> None:
    """Download, and see whether the first rank's file is as it was written."""
    done = where.cloudtrain("download", run_id, "--only", kind, "--to", "got", cwd=cwd)
    assert done.code == 0, done.err
    written = "rank" if kind == "checkpoints" else kind
    assert (cwd / "got" / kind / f"{written}-0").read_text() == "step 7"


@pytest.mark.parametrize("provider", CLOUDS)
def test_all_lines_of_16_ranks_are_followed(provider: str, faulty: Emulator, folder: Path) -> None:
    cloud = Backend(provider, faulty, folder)
    script = scripts.CHATTY.replace("LINES", str(LINES))
    job = job_file(folder / "chatty", script, name="chatty", resources={"nodes": 4, "processes_per_node": 4})
    ended = cloud.cloudtrain(*_submit(cloud), "--follow", cwd=job.parent)
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    for rank in range(16):
        begins = f"[{rank // 4}/{rank}] "
        heard = [line.removeprefix(begins) for line in lines if line.startswith(begins)]
        assert heard == [f"line {number} of rank {rank}" for number in range(LINES)]
    assert len(lines) == 16 * LINES
