"""The job's own Python packages, installed into the interpreter that the workers will run in."""

from __future__ import annotations

import collections
import os
import subprocess
import sys
from collections.abc import Mapping

from cloudtrain_launch.environ import without_foreign
from cloudtrain_launch.errors import LaunchError

_LAST_LINES = 3


def install(path: str, env: Mapping[str, str]) -> None:
    """``pip install -r path``, its output shown as it comes. Raises LaunchError with pip's last lines if it fails."""
    if not os.path.isfile(path):
        raise LaunchError(f"environment.requirements: {path} is not in the code")
    command = [sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "-r", path]
    print(f"installing {os.path.basename(path)}", flush=True)
    last: collections.deque[str] = collections.deque(maxlen=_LAST_LINES)
    with subprocess.Popen(
        command, cwd=os.path.dirname(path), env=_environment(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="backslashreplace",
    ) as pip:  # fmt: skip
        for line in pip.stdout or ():
            print(f"pip: {line.rstrip()}", flush=True)
            last.append(line.strip())
    if pip.returncode:
        what = f"pip install -r {os.path.basename(path)} ended with code {pip.returncode}"
        raise LaunchError(f"environment.requirements: {what}: {'; '.join(filter(None, last)) or 'it said nothing'}")


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    """Without our own variables, secrets above all. A container is the job's alone: no warning about root, and no
    refusal where Python is the distribution's (PEP 668)."""
    return {"PIP_ROOT_USER_ACTION": "ignore", "PIP_BREAK_SYSTEM_PACKAGES": "1", **without_foreign(env)}
