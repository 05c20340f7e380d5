"""Imports torch once, then forks the ranks of one job after the other: ``python fork_server.py``, jobs on stdin.

A job is one line of JSON: ``{"script", "argv", "cwd", "env": [per rank], "logs"}``. The answer is a line as well:
``{"codes", "left"}``, the exit codes (negative: the signal that ended a rank) and the ranks that left processes behind.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

import torch
import torch._dynamo  # noqa: F401  what a first optimizer step imports: most of the time of a short training

LIMIT = 120  # seconds for one job; a rank that hangs is a failed test, not a stuck suite


def serve() -> None:
    for line in sys.stdin:
        job = json.loads(line)
        pids = [_start(job, rank) for rank in range(len(job["env"]))]
        codes = _wait(pids)
        _answer({"codes": codes, "left": [rank for rank, pid in enumerate(pids) if _kill(pid)]})


def _wait(pids: list[int]) -> list[int]:
    signal.signal(signal.SIGALRM, lambda *_: [_kill(pid) for pid in pids])
    signal.alarm(LIMIT)
    codes = {}
    for _ in pids:
        pid, status = os.wait()
        codes[pid] = os.waitstatus_to_exitcode(status)
    signal.alarm(0)
    return [codes[pid] for pid in pids]


def _answer(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _kill(pid: int) -> bool:
    """Whether there was anything left of a rank and the processes it started."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _start(job: dict[str, Any], rank: int) -> int:
    pid = os.fork()
    if pid == 0:
        _become(job, rank)
    return pid


def _become(job: dict[str, Any], rank: int) -> NoReturn:
    code = 1
    try:
        os.setsid()
        os.chdir(job["cwd"])
        output = os.open(Path(job["logs"]) / f"rank-{rank}.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ.update(job["env"][rank])
        sys.argv = [job["script"], *job["argv"]]
        sys.path.insert(0, str(Path(job["script"]).parent))
        runpy.run_path(job["script"], run_name="__main__")
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001  the end of a process, printed as Python would
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
