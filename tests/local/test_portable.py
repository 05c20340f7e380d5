"""What other systems than Linux get: no prctl, no /proc, no fork without exec; and no `run` on Windows."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.local.project import Project
from tests.local.test_stopping import IGNORING, SAVING, UP

PORTABLE = {"CT_PORTABLE_PROCESSES": "1"}


def test_a_run_without_linux_calls(project: Project) -> None:
    project.job()
    result = project.run("--isolation", "none", "--engine", "agents", env=PORTABLE)
    assert result.code == 0, result.err
    assert result.out.count("sum 6.0 world 4") == 4


@pytest.mark.parametrize(("script", "code"), [(SAVING, 143), (IGNORING, 143)])
def test_stopping_without_linux_calls(project: Project, script: str, code: int) -> None:
    project.job(script)
    running = project.start("--isolation", "none", "--engine", "agents", "--grace", "3s", env=PORTABLE)
    running.wait_for_files(*UP)
    running.signal(signal.SIGTERM)
    assert running.end().code == code


def test_a_killed_command_without_linux_calls(project: Project) -> None:
    project.job(SAVING)
    running = project.start("--isolation", "none", "--engine", "agents", env=PORTABLE)
    running.wait_for_files(*UP)
    running.signal(signal.SIGKILL)
    running.process.communicate()
    project.wait_until_none_is_left()


# Modules that Windows lacks cannot be imported, and the platform says that it is Windows.
AS_ON_WINDOWS = """
import sys
for name in ("fcntl", "pwd", "grp", "termios", "resource", "posix_spawn"):
    sys.modules[name] = None
from cloudtrain.cli import main
import cloudtrain.job, cloudtrain.bundle, yaml, pathspec  # loaded as on this system, which they ask for
sys.platform = "win32"
main()
"""


@pytest.mark.parametrize(
    ("arguments", "code"), [("validate job.yaml", 0), ("bundle job.yaml", 0), ("schema", 0), ("run job.yaml", 3)]
)
def test_on_windows_all_but_run_works(project: Project, arguments: str, code: int) -> None:
    project.job()
    result = subprocess.run(
        [sys.executable, "-c", AS_ON_WINDOWS, *arguments.split()],
        cwd=project.folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == code, result.stderr
    assert ("needs Linux or macOS" in result.stderr) == (code == 3)
