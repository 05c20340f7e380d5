"""Nodes started as a cloud starts them: `python launch.py` and an environment, nothing of cloudtrain above it."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cloudtrain import shipped
from tests.local.project import LIMIT_SECONDS, Project

LAUNCH = str(shipped.entrypoints() / "launch.py")


def free_port() -> int:
    """Below the ports that the system hands out, so that no other process is given it meanwhile."""
    while True:
        port = random.SystemRandom().randrange(15_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port


@dataclass
class Node:
    """One launcher that was started."""

    number: int
    process: subprocess.Popen[str]
    folder: Path
    out: str = ""
    err: str = ""

    def end(self) -> int:
        """Wait for its end; returns the exit code, with the output in ``out`` and ``err``."""
        self.out, self.err = self.process.communicate(timeout=LIMIT_SECONDS)
        return self.process.returncode

    def wait_for(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + LIMIT_SECONDS
        while not condition():
            assert self.process.poll() is None, (self.end(), self.out, self.err)
            assert time.monotonic() < deadline
            time.sleep(0.02)

    @property
    def report(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads((self.folder / "report.json").read_text())
        return data


@dataclass
class Job:
    """The spec, the code, and the contract's environment in one folder; the nodes are all on this machine."""

    project: Project
    hosts: Sequence[str] = ("127.0.0.1", "127.0.0.1")
    port: int = field(default_factory=free_port)
    spec: dict[str, Any] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.project.folder

    def write(self, script: str, **spec: Any) -> None:
        """``script`` as hello.py, and spec.json with these fields instead of the usual ones."""
        self.project.write("code/hello.py", script)
        usual = {"version": 1, "run_id": "r1", "kind": "entry", "target": "hello.py", "code": "code", "args": []}
        self.spec = {**usual, "processes_per_node": 2, "start_timeout": 60.0, **spec}
        self.project.write("spec.json", json.dumps(self.spec))

    def environment(self, number: int, changed: Mapping[str, str | None]) -> dict[str, str]:
        env: dict[str, str | None] = {
            **os.environ,
            "CT_TEST_MARK": self.project.mark,
            "PROJECT": str(self.folder),
            "CLOUDTRAIN_PROVIDER": "local",
            "CLOUDTRAIN_SPEC": str(self.folder / "spec.json"),
            "CLOUDTRAIN_HOSTS": ",".join(self.hosts),
            "CLOUDTRAIN_NODE_RANK": str(number),
            "CLOUDTRAIN_PORT": str(self.port),
            "CLOUDTRAIN_NODE_DIR": str(self.folder / f"node-{number}"),
            **changed,
        }
        return {name: value for name, value in env.items() if value is not None}

    def start(
        self, number: int, *, before: Sequence[str] = (), changed: Mapping[str, str | None] = MappingProxyType({})
    ) -> Node:
        """Start one node; ``before`` is a command that runs launch.py, ``changed`` the environment's other values."""
        env = self.environment(number, changed)
        folder = Path(env.get("CLOUDTRAIN_NODE_DIR", self.folder / "nowhere"))
        folder.mkdir(exist_ok=True)
        process = subprocess.Popen(
            [*before, sys.executable, "-u", LAUNCH], env=env, cwd=self.folder, text=True, encoding="utf-8",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        node = Node(number, process, folder)
        self.nodes.append(node)
        return node

    def run(self) -> list[int]:
        """All nodes at once, to their ends; the exit codes."""
        for number in range(len(self.hosts)):
            self.start(number)
        return [node.end() for node in self.nodes]

    def stop(self) -> None:
        for node in self.nodes:
            if node.process.poll() is None:
                node.process.send_signal(signal.SIGKILL)
            node.process.communicate()
