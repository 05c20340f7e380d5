"""Follows the nodes of a local run to their end, and stops them when asked to.

Whatever happens here, the nodes end: if this process dies, the host process sees its input close and stops them.
"""

from __future__ import annotations

import time
from typing import Any

from cloudtrain.providers.local.client import Event, HostProcess
from cloudtrain.record.folder import RunFolder
from cloudtrain.record.metrics import MetricsReader
from cloudtrain.record.observer import Observer
from cloudtrain.record.state import State

_METRICS_SECONDS = 0.25


class Follower:
    """The loop. ``request_stop`` may be called from a signal handler or another thread, also before the loop runs."""

    def __init__(
        self, host: HostProcess, folder: RunFolder, observer: Observer, *, nodes: int, runtime: float | None
    ) -> None:
        self.reports: dict[int, dict[str, Any]] = {}
        self.statuses: dict[int, int] = {}
        self.pids: dict[int, int] = {}
        self.fault: str | None = None
        self.torch_problem: str | None = None
        """What keeps torch from being loaded; then nothing has been started."""
        self.isolation: str | None = None
        self.isolation_problem: str | None = None
        self.stopped_by: str | None = None
        self.last_metrics: dict[str, Any] = {}
        self.state = State.PENDING
        self._host = host
        self._folder = folder
        self._observer = observer
        self._nodes = nodes
        self._runtime = runtime
        self._asked = 0
        self._told = 0
        self._handed_over = False
        self._deadline: float | None = None
        self._metrics = MetricsReader(folder.metrics)
        self._next_metrics = 0.0

    def request_stop(self, cause: str) -> int:
        """Ask for the end: in order the first time, at once the second time. Returns how often it has been asked.

        Acts at once, and not in the loop, which may be stuck in a write to a terminal that nobody reads.
        """
        self._asked += 1
        self._observer.hurry()
        self.stopped_by = self.stopped_by or cause
        if self._handed_over:
            self._host.stop() if self._asked == 1 else self._host.kill()
        return self._asked

    def run(self) -> None:
        """Follow until the last node has ended. The host process has its request."""
        if self._asked and not self._handed_over:
            self._host.stop() if self._asked == 1 else self._host.kill()
        self._handed_over = True
        while not self._host.drained():
            for event in self._host.events(0.1):
                self._hear(event)
            if not self._asked and self._folder.stop_file.exists():
                self.request_stop("Run.stop")
            self._tell_of_stop()
            self._check_runtime()
            if time.monotonic() > self._next_metrics:
                self._read_metrics()
            self._observer.tick()
        self._read_metrics()
        refused = self.torch_problem is not None or (self.isolation is None and self.isolation_problem is not None)
        if self.fault is None and not refused and len(self.statuses) < self._nodes:
            self.fault = f"the host process ended before its nodes did, with status {self._host.status()}"

    def _hear(self, event: Event) -> None:
        kind = event["kind"]
        if kind == "line":
            self._observer.line(event["node"], event["rank"], event["text"])
        elif kind == "state":
            self._enter({"running": State.RUNNING, "stopping": State.STOPPING}.get(event["state"], State.PROVISIONING))
        elif kind == "report":
            self.reports[event["node"]] = event["report"]
        elif kind == "started":
            self.pids[event["node"]] = event["pid"]
            if len(self.pids) == self._nodes:
                self._folder.update_state(node_pids=[pid for _, pid in sorted(self.pids.items())])
        elif kind == "ended":
            self.statuses[event["node"]] = event["status"]
        elif kind == "isolation":
            self.isolation, self.isolation_problem = event["isolation"], event["reason"]
            if self.isolation == "netns":
                self._observer.note("each node has its own network, without internet; --isolation none shares this one")
            elif self.isolation and self.isolation_problem:
                self._observer.note(f"isolation none, all nodes on this machine's network: {self.isolation_problem}")
        elif kind == "torch":
            self.torch_problem = event["problem"]
        elif kind == "fault":
            self.fault = event["message"]

    def _enter(self, state: State) -> None:
        order = [State.PENDING, State.PROVISIONING, State.RUNNING, State.STOPPING]
        if order.index(state) <= order.index(self.state):
            return  # a later node repeats what an earlier one said
        self.state = state
        if state is State.RUNNING and self._runtime is not None:
            self._deadline = time.monotonic() + self._runtime
        self._folder.update_state(state=state.value, isolation=self.isolation)
        self._observer.state(state)

    def _tell_of_stop(self) -> None:
        while self._told < min(self._asked, 2):
            self._told += 1
            first = f"{self.stopped_by}: stopping all ranks; once more to kill them"
            self._observer.note(first if self._told == 1 else "killing all nodes")

    def _check_runtime(self) -> None:
        if self._deadline is not None and time.monotonic() > self._deadline and not self._asked:
            self._observer.note(f"limits.runtime: {self._runtime:g} s are over")
            self.request_stop("runtime")

    def _read_metrics(self) -> None:
        self._next_metrics = time.monotonic() + _METRICS_SECONDS
        for record in self._metrics.new():
            self.last_metrics.update((name, value) for name, value in record.items() if name not in ("rank", "time"))
            self._observer.metric(record)
