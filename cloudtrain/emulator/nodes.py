"""The containers of one start of a job: real processes that run the launch.py that came with it.

Over the host process of local runs (``providers/local/host.py``): torch is loaded once and every node forked from that,
or a fresh interpreter started where the job sets variables that are read so early. Where the system permits it each
node has its own network, host name and process tree, and the names in the contract are found there; elsewhere all share
this machine's, and are told so by CLOUDTRAIN_HOSTMAP.

A node has the variables of its plan, a minimum that every container has, and nothing of this process's: neither
credentials nor the home folder where more of them lie.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from cloudtrain.emulator.base import NodePlan
from cloudtrain.emulator.relay import Relay
from cloudtrain.errors import MissingError
from cloudtrain.providers.local.client import (
    Container,
    HostProcess,
    Launch,
    by_python,
    require_torch,
    usual_engine,
)
from cloudtrain.providers.local.options import Isolation
from cloudtrain.providers.local.translate import READ_AT_START

_PAUSE_SECONDS = 0.05
_OF_THIS_PYTHON = ("LD_LIBRARY_PATH", "PYTHONHOME")
"""Without them the interpreter, or torch, might not start at all."""
_SERVED_HERE = re.compile(r"\bhttps?://127\.0\.0\.1:(\d{1,5})\b")


class Nodes:
    """All nodes of one start. Any method may be called from any thread."""

    pids: tuple[int, ...]
    """Of each node's first process, seen from here."""

    def __init__(
        self,
        plans: Sequence[NodePlan],
        isolation: Isolation = "auto",
        launch: Launch = by_python,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """Start them; returns when each has its first process. Gives up when ``is_over`` says so.

        Raises MissingError if this machine does not let us.
        """
        self._ended: dict[int, int] = {}
        self._lock = threading.Lock()
        self._relay: Relay | None = None
        self._closed = False
        self._count = len(plans)
        fresh = any(name.startswith(READ_AT_START) for plan in plans for name in plan.env)
        require_torch()
        self._host = HostProcess(isolation, "agents" if fresh else usual_engine(), launch=launch)
        try:
            self._start(plans, is_over)
        except BaseException:
            self.close()
            raise

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    def poll(self) -> dict[int, int]:
        """Node -> exit status, of those that have ended. Negative: by that signal."""
        with self._lock:
            self._hear(0)
            return dict(self._ended)

    def signal(self, number: int, node: int | None = None) -> None:
        """To the first process of a node, or of every node, and to no other: as a container runtime does."""
        with self._lock:
            if not self._closed:
                self._host.signal(number, node)

    def kill(self) -> None:
        """SIGKILL to all, and wait for their ends."""
        self.signal(signal.SIGKILL)
        while not self.wait(1.0):
            self.signal(signal.SIGKILL)

    def wait(self, seconds: float) -> bool:
        """Until all have ended; False if that takes longer."""
        deadline = time.monotonic() + seconds
        while len(self.poll()) < self._count:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(_PAUSE_SECONDS, left))
        return True

    def close(self) -> None:
        """Kill what is left, and remove what they had in this machine's temporary folder. May be called twice."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._host.close()
            self._ended = {node: self._ended.get(node, -signal.SIGKILL) for node in range(self._count)}
            if self._relay:
                self._relay.close()
                self._relay = None

    # -- starting ----------------------------------------------------------------------------------------------------

    def _start(self, plans: Sequence[NodePlan], is_over: Callable[[], bool]) -> None:
        token = secrets.token_hex(16)
        ports = sorted({int(port) for plan in plans for value in plan.env.values() for port in _served_here(value)})
        with _meeting_place(self._host.folder / "relay") as meeting:
            self._host.start(
                [_environment(plan, node, len(plans), self._host, token) for node, plan in enumerate(plans)],
                containers=[Container(plan.launch, plan.cwd, plan.log) for plan in plans],
                relayed=ports,
            )
            self.pids = self._await_starts(is_over)
            if self._isolated and ports:
                self._relay = Relay(list(_received(meeting, len(plans), ports)))

    def _await_starts(self, is_over: Callable[[], bool]) -> tuple[int, ...]:
        self._pids: dict[int, int] = {}
        self._isolated = False
        self._problem = ""
        while len(self._pids) < self._count:
            self._hear(_PAUSE_SECONDS)
            if self._host.ended or self._problem:
                raise MissingError(f"the emulator cannot start nodes: {self._problem or 'their host process ended'}")
            if is_over():
                raise MissingError("the emulator ends")
        return tuple(self._pids[node] for node in range(self._count))

    def _hear(self, seconds: float) -> None:
        for event in () if self._closed or self._host.ended else self._host.events(seconds):
            kind = event["kind"]
            if kind == "started":
                self._pids[event["node"]] = event["pid"]
            elif kind == "ended":
                self._ended[event["node"]] = event["status"]
            elif kind == "isolation":
                self._isolated = event["isolation"] == "netns"
                self._problem = event["reason"] if event["isolation"] is None else ""
            elif kind == "torch":
                self._problem = f"torch cannot be loaded: {event['problem']}"
            elif kind == "fault":
                self._problem = event["message"].strip().rpartition("\n")[2]
        if self._host.ended:
            self._ended = {node: self._ended.get(node, -signal.SIGKILL) for node in range(self._count)}


def _environment(plan: NodePlan, node: int, nodes: int, host: HostProcess, token: str) -> dict[str, str]:
    """The container's own, a minimum, and what it has to know since it shares a machine with the others."""
    temporary = host.folder / f"node-{node}"
    home = temporary / "home"
    home.mkdir(parents=True)
    return {
        **{name: os.environ[name] for name in _OF_THIS_PYTHON if name in os.environ},
        "PATH": os.pathsep.join(filter(None, (str(Path(sys.executable).parent), os.environ.get("PATH", "")))),
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "TMPDIR": str(temporary),
        # The Python is the user's own: packages are looked for there, and none is put there.
        "PIP_DRY_RUN": "1",
        "PIP_NO_INDEX": "1",
        **plan.env,
        "CLOUDTRAIN_NODE_CORES": str(max(1, _cores() // nodes)),
        "CLOUDTRAIN_TOKEN": token,
        # Nodes are emulated, accelerators are not: this machine's may be of another kind, and are too few.
        "CLOUDTRAIN_NODE_DEVICE": "cpu",
        "CUDA_VISIBLE_DEVICES": "",
    }


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _served_here(value: str) -> Iterator[str]:
    return (match[1] for match in _SERVED_HERE.finditer(value))


@contextlib.contextmanager
def _meeting_place(path: Path) -> Iterator[socket.socket]:
    """Where the host process hands over sockets."""
    with socket.socket(socket.AF_UNIX) as meeting:
        meeting.bind(str(path))
        meeting.listen(1)
        yield meeting


def _received(meeting: socket.socket, nodes: int, ports: Sequence[int]) -> Iterator[tuple[socket.socket, int]]:
    """The sockets in the nodes' networks, each with its port; the host process has sent all of them."""
    connection, _ = meeting.accept()
    with connection:
        for _ in range(nodes):
            descriptors = socket.recv_fds(connection, 1, len(ports))[1]
            yield from ((socket.socket(fileno=fd), port) for fd, port in zip(descriptors, ports, strict=True))
