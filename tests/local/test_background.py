"""Runs that go on in the background: submitted, followed, left, stopped, gone on with, killed; by commands alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.local.project import Project

# Counts until it is told to end, keeps its count, and goes on from it; ends well once a file says so.
COUNTING = """
import os, pathlib, signal, sys, time
here, rank = pathlib.Path(os.environ["PROJECT"]), os.environ["RANK"]
kept = pathlib.Path(os.environ["CLOUDTRAIN_CHECKPOINT_DIR"], f"count-{rank}")
count = int(kept.read_text()) if kept.exists() else 0
print("attempt", os.environ["CLOUDTRAIN_ATTEMPT"], "of", os.environ["CLOUDTRAIN_RUN_ID"], "from", count, *sys.argv[1:])
sys.stdout.flush()
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(1))
(here / f"up-{rank}").touch()
while not told:
    count += 1
    if (here / "finish").exists():
        pathlib.Path(os.environ["CLOUDTRAIN_MODEL_DIR"], f"model-{rank}").write_text(str(count))
        sys.exit(0)
    time.sleep(0.01)
kept.write_text(str(count))
sys.exit(143)
"""


def submitted(project: Project, *words: str) -> dict[str, Any]:
    status: dict[str, Any] = json.loads(
        project.verb("submit", "job.yaml", "--provider", "local", "--json", *words).stdout
    )
    return status


def standing(project: Project, run: str) -> dict[str, Any]:
    status: dict[str, Any] = json.loads(project.verb("status", run, "--json").stdout)
    return status


def up(project: Project) -> bool:
    return all((project.folder / f"up-{rank}").exists() for rank in range(2))


def test_a_life_in_the_background(project: Project, tmp_path: Path) -> None:
    project.job(COUNTING, nodes=1, processes=2)
    project.write(".cloudtrainignore", "up-*\nfinish\n")  # with them the code would be other code
    run = submitted(project)["run_id"]
    project.wait_for(lambda: up(project), "ranks")

    # The same job is taken up, not started again, and followed; leaving it does not end it.
    following = project.started("submit", "job.yaml", "--provider", "local", "--follow")
    assert following.stdout and following.stderr
    assert following.stdout.readline().startswith("[0/")
    following.send_signal(signal.SIGINT)
    _, err = following.communicate()
    assert following.returncode == 130, err
    assert f"run {run} of this job is RUNNING already" in err
    assert "no longer following" in err and f"cloudtrain stop {run}" in err

    # From another folder, by the beginning of its id.
    assert standing(project, run)["state"] == "RUNNING"
    listed = json.loads(project.verb("runs", "--state", "running", "--json", cwd=tmp_path).stdout)
    assert [(entry["run_id"], entry["state"]) for entry in listed] == [(run, "RUNNING")]
    assert "STOPPED" in project.verb("stop", run[:-3], "--wait", cwd=tmp_path).stdout
    assert project.verb("logs", run, "--follow", "--rank", "1", code=130, cwd=tmp_path).stdout == (
        f"[0/1] attempt 1 of {run} from 0\n"
    )

    # On with the code that it had, from where it was.
    project.write("train.py", "raise SystemExit('this is other code')")
    (project.folder / "finish").touch()
    done = project.verb("resume", run, "--follow", "--json", cwd=tmp_path)
    status = json.loads(done.stdout)
    assert (status["state"], status["attempt"], status["run_id"], status["exit_code"]) == ("SUCCEEDED", 2, run, 0)
    newest = project.verb("logs", run, "--rank", "1")
    assert newest.stdout.startswith(f"[0/1] attempt 2 of {run} from ")
    assert f"cloudtrain logs {run} --attempt 1" in newest.stderr
    first = project.verb("logs", run, "--rank", "1", "--attempt", "1")
    assert (first.stdout, first.stderr) == (f"[0/1] attempt 1 of {run} from 0\n", "")
    assert f"cloudtrain logs {run} --attempt 1" in project.verb("status", run).stdout
    assert json.loads(project.verb("status", run, "--attempt", "1", "--json").stdout)["state"] == "STOPPED"
    assert "has no attempt 3; its attempts: 1, 2" in project.verb("status", run, "--attempt", "3", code=2).stderr
    begun = [line for line in done.stderr.splitlines() if "attempt 2 of " in line and line.startswith("[0/")]
    assert len(begun) == 2 and all(int(line.split()[-1]) > 0 for line in begun)
    project.verb("download", run, "--to", str(tmp_path / "results"), "--only", "model")
    assert sorted(path.name for path in (tmp_path / "results" / "model").iterdir()) == ["model-0", "model-1"]


def test_two_submits_at_once_are_one_run(project: Project) -> None:
    project.job(COUNTING, nodes=1, processes=2)
    (project.folder / "finish").touch()
    both = [project.started("submit", "job.yaml", "--provider", "local", "--quiet") for _ in range(2)]
    ids = {process.communicate()[0] for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert len(ids) == 1
    (run,) = (text.strip() for text in ids)
    project.verb("logs", run, "--follow")
    folders = [path.name for path in (project.folder / ".cloudtrain/runs").iterdir() if not path.is_symlink()]
    assert folders == [f"{run}-a1"]


def test_another_run_of_a_job_that_has_ended_is_announced(project: Project) -> None:
    project.job(COUNTING, nodes=1, processes=2)
    project.write(".cloudtrainignore", "up-*\nfinish\n")
    (project.folder / "finish").touch()
    run = submitted(project)["run_id"]
    project.verb("logs", run, "--follow")
    words = ("submit", "job.yaml", "--provider", "local")
    said = project.verb(*words, "--dry-run").stdout.splitlines()[0]
    assert said == (
        f"would submit {run}-2 to local as {run}-2-a1; run {run} of this job SUCCEEDED before; nothing was sent"
    )
    assert project.verb(*words, "--dry-run", "--quiet").stdout == f"{run}-2\n"
    done = project.verb(*words, "--json")
    assert json.loads(done.stdout)["run_id"] == f"{run}-2"
    assert f"run {run} of this job SUCCEEDED before; this is another one, {run}-2" in done.stderr
    project.verb("logs", f"{run}-2", "--follow")
    project.wait_until_none_is_left()


def test_a_run_whose_process_is_killed_has_failed(project: Project) -> None:
    project.job(COUNTING, nodes=1, processes=2)
    run = submitted(project)["run_id"]
    project.wait_for(lambda: up(project), "ranks")
    following = project.started("logs", run, "--follow")
    os.kill(json.loads((project.latest / "run.json").read_text())["pid"], signal.SIGKILL)
    out, err = following.communicate()
    assert following.returncode == 1, err
    assert sorted(out.splitlines()) == [f"[0/{rank}] attempt 1 of {run} from 0" for rank in range(2)]
    status = standing(project, run)
    assert (status["state"], status["cause"]) == ("FAILED", "infrastructure")
    assert "the process that ran it ended before the run did" in status["reason"]
    project.wait_until_none_is_left()


def test_a_run_that_was_interrupted_goes_on_with_its_options(project: Project, tmp_path: Path) -> None:
    project.job(COUNTING, nodes=1, processes=1)
    running = project.start("--isolation", "none", "--processes", "2", "--", "--more", "words")
    running.wait_for_files("up-0", "up-1")
    running.signal(signal.SIGINT)
    first = running.end()
    assert first.code == 130 and first.folder
    (project.folder / "finish").touch()
    done = project.verb("resume", "latest", "--follow", cwd=tmp_path)
    run = first.folder.name
    lines = sorted(line for line in done.stdout.splitlines() if line.startswith("["))
    assert [line.partition(" from ")[0] for line in lines] == [f"[0/{rank}] attempt 2 of {run}" for rank in range(2)]
    assert all(line.endswith("--more words") and " from 0 " not in line for line in lines)


def test_a_process_that_cannot_start_leaves_a_run_that_has_failed(project: Project) -> None:
    project.job(COUNTING, nodes=1, processes=2)
    program = """
import os
import cloudtrain as ct
os.environ["PYTHONHOME"] = "/nowhere"  # no further Python starts
run = ct.submit("job.yaml", "local")
print(run.wait(timeout=30).state, run.status().cause, list(run.logs(follow=True)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=project.folder, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "FAILED infrastructure []\n", done.stderr
    assert "background.log" in {path.name for path in (project.folder / ".cloudtrain/runs").glob("*/*")}


@pytest.mark.parametrize(
    ("extra", "code", "said"),
    [
        ("data: {train: {uri: {local: nothing}}}\n", 2, "data.train: "),
        ("environment: {secrets: {KEY: {local: env:CT_TEST_NOT_SET}}}\n", 3, "the variable CT_TEST_NOT_SET is not set"),
        ("framework: jax\n", 2, "framework: jax runs one process per node"),
    ],
)
def test_what_cannot_run_here_is_refused_before_anything_is_begun(
    project: Project, extra: str, code: int, said: str
) -> None:
    project.job(COUNTING, nodes=1, processes=1, extra=extra)
    done = project.verb("submit", "job.yaml", "--provider", "local", code=code)
    assert said in done.stderr and done.stdout == ""
    assert project.verb("runs").stdout == "none\n"
    assert not (project.folder / ".cloudtrain").exists()
