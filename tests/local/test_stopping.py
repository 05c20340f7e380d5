"""Signals to the command line and to single nodes: once, twice, three times, heeded and ignored."""

from __future__ import annotations

import os
import signal
import time

import psutil
import pytest

from tests.local.project import LIMIT_SECONDS, Project, Running

UP = [f"up-{rank}" for rank in range(4)]

# A script that saves when told to, as a good one does: flag in the handler, agreement at the step, then 143.
SAVING = """
import os, pathlib, signal, sys, time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
here, rank = pathlib.Path(os.environ["PROJECT"]), dist.get_rank()
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(1))
(here / f"up-{rank}").touch()
step = 0
while True:
    step += 1
    flag = torch.tensor([float(bool(told))])
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    if flag.item():
        (here / f"saved-{rank}").write_text(f"{step} {len(told)}")
        sys.exit(143)
    time.sleep(0.01)
"""

IGNORING = """
import os, pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(os.environ["PROJECT"], f"up-{os.environ['RANK']}").touch()
while True:
    time.sleep(0.1)
"""


def _up(project: Project, script: str, *options: str) -> Running:
    project.job(script)
    running = project.start(*options)
    running.wait_for_files(*UP)
    running.wait_for(lambda: running.state()["state"] == "RUNNING", "state RUNNING")
    return running


ENDS = [(signal.SIGINT, 130, "STOPPED"), (signal.SIGTERM, 143, "PREEMPTED")]


@pytest.mark.parametrize(("number", "code", "state"), ENDS)
@pytest.mark.parametrize("isolation", ["none", "netns"])
def test_one_signal_lets_all_ranks_save_the_same_step(
    project: Project, isolation: str, number: int, code: int, state: str
) -> None:
    running = _up(project, SAVING, "--isolation", isolation)
    running.signal(number)
    result = running.end()
    assert (result.code, result.report["state"]) == (code, state)
    saved = [(project.folder / f"saved-{rank}").read_text().split() for rank in range(4)]
    assert len({step for step, _ in saved}) == 1
    assert f"cloudtrain resume {result.report['run_id']} --follow" in result.err


def test_ranks_are_told_once_however_often_the_launcher_is(project: Project) -> None:
    running = _up(project, SAVING, "--isolation", "none")
    for pid in running.state()["node_pids"]:
        for _ in range(5):
            os.kill(pid, signal.SIGTERM)
    assert running.end().code == 143
    assert all((project.folder / f"saved-{rank}").read_text().split()[1] == "1" for rank in range(4))


@pytest.mark.parametrize("isolation", ["none", "netns"])
def test_sigterm_to_one_node_preempts_the_job(project: Project, isolation: str) -> None:
    running = _up(project, SAVING, "--isolation", isolation)
    os.kill(running.state()["node_pids"][1], signal.SIGTERM)
    result = running.end()
    assert (result.code, result.report["state"]) == (143, "PREEMPTED")
    assert len({(project.folder / f"saved-{rank}").read_text().split()[0] for rank in range(4)}) == 1


def test_a_script_that_ignores_sigterm_is_killed_after_the_grace(project: Project) -> None:
    running = _up(project, IGNORING, "--isolation", "none", "--grace", "1s")
    running.signal(signal.SIGTERM)
    result = running.end()
    assert result.code == 143
    assert [rank["status"] for rank in result.report["ranks"]] == [-9] * 4


@pytest.mark.parametrize("isolation", ["none", "netns"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_kills(project: Project, isolation: str, number: int) -> None:
    running = _up(project, IGNORING, "--isolation", isolation, "--grace", "1h")
    running.signal(number)
    running.wait_for(lambda: running.state()["state"] == "STOPPING", "state STOPPING")
    running.signal(number)
    result = running.end()
    assert result.code == 128 + number
    assert "killing all nodes" in result.err


def test_three_signals_at_once(project: Project) -> None:
    running = _up(project, IGNORING, "--isolation", "none", "--grace", "1h")
    for _ in range(3):
        running.signal(signal.SIGINT)
        running.signal(signal.SIGTERM)
    assert running.end().code in (130, 143)


def test_sigint_before_anything_runs(project: Project) -> None:
    project.job(SAVING)
    running = project.start()
    running.wait_for(project.left_over, "a process")
    running.signal(signal.SIGINT)
    assert running.end().code in (130, -signal.SIGINT)


def test_sigterm_while_torch_is_loaded(project: Project) -> None:
    project.job(SAVING)
    running = project.start("--isolation", "none")
    running.wait_for((project.folder / ".cloudtrain/runs/latest/run.json").exists, "run.json")
    running.signal(signal.SIGTERM)
    assert running.end().code == 143


@pytest.mark.parametrize("isolation", ["none", "netns"])
def test_a_launcher_that_has_just_begun_hears_of_a_signal(project: Project, isolation: str) -> None:
    """It has no handler yet: the first process of a container would miss it for good, another die without a word."""
    project.job(SAVING)
    running = project.start("--isolation", isolation, "--engine", "agents")
    running.wait_for((project.folder / ".cloudtrain/runs/latest/run.json").exists, "run.json")
    running.wait_for(lambda: "node_pids" in running.state(), "nodes")
    os.kill(running.state()["node_pids"][1], signal.SIGTERM)
    result = running.end()
    assert result.code == 143
    assert [node["outcome"] for node in result.report["nodes"]] == ["preempted", "preempted"]


@pytest.mark.parametrize("isolation", ["none", "netns"])
def test_sigterm_to_every_process_at_once(project: Project, isolation: str) -> None:
    """As service managers and schedulers stop what they have started."""
    running = _up(project, SAVING, "--isolation", isolation)
    for process in [*psutil.Process(running.process.pid).children(recursive=True), running.process]:
        process.send_signal(signal.SIGTERM)
    result = running.end()
    assert (result.code, result.report["state"]) == (143, "PREEMPTED")
    assert [node["outcome"] for node in result.report["nodes"]] == ["preempted", "preempted"]
    assert all((project.folder / f"saved-{rank}").exists() for rank in range(4))


def test_a_host_process_that_was_stopped_does_not_stay_behind(project: Project) -> None:
    running = _up(project, SAVING, "--isolation", "none")
    for child in psutil.Process(running.process.pid).children():
        child.suspend()
    running.signal(signal.SIGTERM)
    assert running.end().code == 143


def test_a_killed_command_takes_its_nodes_along(project: Project) -> None:
    running = _up(project, SAVING, "--isolation", "none")
    running.signal(signal.SIGKILL)
    running.process.communicate()
    project.wait_until_none_is_left()
    assert all((project.folder / f"saved-{rank}").exists() for rank in range(4))  # and let them save
    from cloudtrain import Run

    status = Run.open("latest", project.folder).status()
    assert (status.state.value, status.exit_code) == ("FAILED", 1)


@pytest.mark.parametrize("isolation", ["none", "netns"])
def test_nobody_continues_from_a_run_that_is_still_saving(project: Project, isolation: str) -> None:
    script = """
import os, pathlib, signal, sys, time
here = pathlib.Path(os.environ["PROJECT"])
def save(*_):
    (here / f"told-{os.environ['RANK']}").touch()
    while not (here / "saved").exists():
        time.sleep(0.02)
    sys.exit(143)
signal.signal(signal.SIGTERM, save)
(here / f"up-{os.environ['RANK']}").touch()
while not (here / "saved").exists():
    time.sleep(0.02)
"""
    running = _up(project, script, "--isolation", isolation)
    running.signal(signal.SIGKILL)
    deadline = time.monotonic() + LIMIT_SECONDS
    while not (project.folder / "told-3").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    refused = project.run("--resume", "latest")
    assert refused.code == 2 and "is still going on" in refused.err
    project.write("saved", "")
    running.process.communicate()
    project.wait_until_none_is_left()
    assert project.run("--resume", "latest", "--isolation", isolation).code == 0


def test_the_runtime_limit(project: Project) -> None:
    project.job(SAVING, extra="limits: {runtime: 1s}\n")
    result = project.run("--isolation", "none")
    assert (result.code, result.report["state"]) == (1, "TIMED_OUT")
    assert "limits.runtime" in result.err
