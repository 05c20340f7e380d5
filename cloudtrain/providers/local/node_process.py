"""How a process that the host process has forked becomes a node: its place, its outlets, its launcher."""

from __future__ import annotations

import os
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Any

from cloudtrain_launch import processes

Plan = dict[str, Any]
"""What the host process is told to start: see ``client.HostProcess.start``."""


def is_sealed(plan: Plan) -> bool:
    """Whether the nodes are the emulator's containers, which get nothing of this process's environment."""
    return any(container["log"] for container in plan["containers"])


def become(
    plan: Plan, node: int, env: dict[str, str], listener: socket.socket | None, own_pids: bool, engine: str
) -> None:
    """In the forked child: from here on this process is node ``node``'s launcher."""
    code = 125
    try:
        processes.default_signals(blocked=processes.ENDING)  # its launcher lets them in
        os.setsid()
        # SIGTERM, so that a node whose host is killed still stops its workers in order.
        last_word = signal.SIGKILL if is_sealed(plan) else signal.SIGTERM
        processes.die_with_parent(0 if own_pids else plan["host"], last_word, plan["host_fd"])
        keep = _outlets(plan, node, env)
        if listener:
            keep.add(listener.fileno())
            env["CLOUDTRAIN_LISTEN_FD"] = str(listener.fileno())
        processes.let_go_of_inherited(keep)
        launch = plan["launch"]
        if plan["containers"]:
            launch, folder = plan["containers"][node]["launch"], plan["containers"][node]["folder"]
            os.chdir(folder)
        if engine == "agents":
            for fd in keep:
                os.set_inheritable(fd, True)
            os.execve(sys.executable, [sys.executable, "-u", launch], env)
        os.environ.clear()
        os.environ.update(env)
        if is_sealed(plan):
            _forget_ours(launch)
        import launch as launcher

        code = launcher.main(dict(os.environ))
    except BaseException:  # noqa: BLE001 - a forked node must not run on as a second host
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _outlets(plan: Plan, node: int, env: dict[str, str]) -> set[int]:
    """Where the node's words go: the run's follower and a log, or the log alone. Returns what it must hold open."""
    log = plan["containers"][node]["log"] if plan["containers"] else None
    if log:
        _redirect(Path(log))
        return set()
    events = socket.socket(socket.AF_UNIX)
    events.connect(plan["events"])
    _redirect(Path(env["CLOUDTRAIN_LOG_DIR"]) / f"node-{node}.log")
    env["CLOUDTRAIN_EVENTS_FD"] = str(events.fileno())
    return {events.detach()}


def _forget_ours(launch: str) -> None:
    """Have what is imported from now on be what came with the job, as if its launch.py had been started."""
    ours = str(Path(sys.modules["cloudtrain_launch"].__path__[0]).parent)
    for name in list(sys.modules):
        if name == "launch" or name.partition(".")[0] in ("cloudtrain_launch", "cloudtrain_job"):
            del sys.modules[name]
    sys.path[:] = [str(Path(launch).resolve().parent), *(path for path in sys.path if path != ours)]


def _redirect(log: Path) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError:  # a full or read-only disk must not stop the node; the launcher says so itself
        out = os.open(os.devnull, os.O_WRONLY)
    for source, target in ((null, 0), (out, 1), (out, 2)):
        os.dup2(source, target)
