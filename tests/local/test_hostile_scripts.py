"""Scripts that do what scripts seldom do."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.local.project import HELLO, Project

CLOSING = """
import os
os.closerange(3, 256)
""" + HELLO.replace("total = ", "import time; time.sleep(3); total = ")


def _one(project: Project, script: str) -> None:
    project.job(script, nodes=1, processes=1)


def test_a_child_that_the_script_forks_does_not_speak_for_the_rank(project: Project) -> None:
    _one(project, "import os, sys\nif os.fork() == 0:\n    sys.exit(3)\nos.wait()\nprint('fine')\n")
    assert project.run().code == 0
    _one(project, "import os\nif os.fork() == 0:\n    raise ValueError\nos.wait()\nprint('fine')\n")
    assert project.run().code == 0


def test_a_rank_that_closed_our_descriptors_is_not_ended(project: Project) -> None:
    project.job(CLOSING)
    result = project.run("--isolation", "none", "--start-timeout", "1s")
    assert result.code == 0, result.err


@pytest.mark.parametrize(
    ("ending", "status"), [("10**30", 255), ("-1", 255), ("True", 1), ("None", 0), ("256", 0), ("'words'", 1)]
)
def test_exit_codes_are_pythons(project: Project, ending: str, status: int) -> None:
    script = f"import sys\nsys.exit({ending})\n"
    _one(project, script)
    by_python = subprocess.run(["python3", "-c", script], capture_output=True, check=False).returncode
    result = project.run("--isolation", "none")
    assert [rank["status"] for rank in result.report["ranks"]] == [status] == [by_python]
    assert ("exited with code 1: words" in result.err) == (ending == "'words'")


@pytest.mark.parametrize(
    "script",
    [
        "class E(Exception):\n    def __str__(self): raise RuntimeError('no text')\nraise E\n",
        "import sys\ndef hook(*_): raise RuntimeError('hook')\nsys.excepthook = hook\nraise KeyError('E')\n",
    ],
)
def test_an_error_that_cannot_be_shown_is_reported_all_the_same(project: Project, script: str) -> None:
    _one(project, script)
    result = project.run()
    first = result.err.split("failed first: ")[1].splitlines()[0]
    assert result.code == 1
    assert "E" in first and "could not" not in first
    assert "train.py" in result.err


def test_control_characters_of_a_message_do_not_reach_the_terminal(project: Project) -> None:
    _one(project, "raise ValueError('\\x1b[2Jgone')\n")
    assert "\x1b[2J" not in project.run().err


BAD_LINES = ["[" * 200_000, f'{{"step": 1, "loss": {"9" * 400}}}', '{"loss": NaN, "rank": 1e300}', "x"]


@pytest.mark.parametrize("line", BAD_LINES)
def test_any_line_in_the_metrics_file(project: Project, line: str) -> None:
    good = "".join(json.dumps({"step": step, "loss": 1.0}) + "\n" for step in (1, 2, 3))
    project.write("line.txt", line)
    _one(
        project,
        f"""
import os, pathlib
line = pathlib.Path(os.environ["PROJECT"], "line.txt").read_text()
pathlib.Path(os.environ["CLOUDTRAIN_METRICS_DIR"], "rank-0.jsonl").write_text(line + "\\n" + {good!r})
""",
    )
    result = project.run("--json")
    assert result.code == 0, result.err

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    assert json.loads(result.out, parse_constant=refuse)["metrics"]["step"] == 3
    assert project.run().code == 0


def test_a_run_is_its_users_own(project: Project) -> None:
    _one(project, "print(1)\n")
    result = project.run()
    assert result.folder is not None
    assert result.folder.stat().st_mode & 0o077 == 0
