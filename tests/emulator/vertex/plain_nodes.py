"""Containers as plain processes that share this machine's network: all that a plane needs of ``Site.start_nodes``."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from cloudtrain.emulator.base import NodePlan


class PlainNodes:
    """See ``cloudtrain.emulator.nodes.Nodes``."""

    def __init__(self, plans: Sequence[NodePlan]) -> None:
        others = _others(plans[0])
        self._processes = [_started(plan, others) for plan in plans]
        self.pids = tuple(process.pid for process in self._processes)

    def poll(self) -> dict[int, int]:
        found = {node: process.poll() for node, process in enumerate(self._processes)}
        return {node: status for node, status in found.items() if status is not None}

    def signal(self, number: int, node: int | None = None) -> None:
        for each, process in enumerate(self._processes):
            if node in (None, each) and process.poll() is None:
                process.send_signal(number)

    def kill(self) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def wait(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while len(self.poll()) < len(self._processes):
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        return True

    def close(self) -> None:
        self.kill()


def start_nodes(plans: Sequence[NodePlan]) -> Any:
    return PlainNodes(plans)


def _started(plan: NodePlan, others: dict[str, str]) -> subprocess.Popen[bytes]:
    shell = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "VIRTUAL_ENV") if name in os.environ}
    with plan.log.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-u", str(plan.launch)],
            cwd=plan.cwd,
            env={**shell, **plan.env, **others},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _others(plan: NodePlan) -> dict[str, str]:
    """The contract's host names are this machine, and its port one that is free."""
    cluster = json.loads(plan.env["CLUSTER_SPEC"])["cluster"]
    hosts = [address.partition(":")[0] for pool in cluster.values() for address in pool]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    interfaces = {f"{library}_SOCKET_IFNAME": "lo" for library in ("GLOO", "TP")}
    return {
        "CLOUDTRAIN_HOSTMAP": ",".join(f"{host}=127.0.0.1" for host in hosts),
        "CLOUDTRAIN_PORT": str(port),
        **interfaces,
    }
