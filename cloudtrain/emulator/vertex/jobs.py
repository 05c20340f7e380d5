"""One CustomJob: what was asked for, how it stands, and the resource that is answered."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from cloudtrain.emulator.vertex.logs import rfc3339
from cloudtrain.emulator.vertex.wording import Ending
from cloudtrain.providers.base import NodeContract, Request
from cloudtrain.providers.reading import entries
from cloudtrain.providers.vertex.contract import node_contract
from cloudtrain.providers.vertex.reading import int64

if TYPE_CHECKING:
    from cloudtrain.emulator.faults import JobFaults

PENDING, QUEUED, RUNNING = "JOB_STATE_PENDING", "JOB_STATE_QUEUED", "JOB_STATE_RUNNING"
CANCELLING = "JOB_STATE_CANCELLING"
FINAL = ("JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED")

_SHOWN_UNKNOWN = range(1, 4)
"""Of the answers while the job runs: those that show a state nobody knows, where the fault file says so."""


class Replica(NamedTuple):
    """One of a job's containers."""

    task: str
    """``workerpool0-0``"""
    spec: Mapping[str, Any]
    """Its pool's."""
    contract: NodeContract


class Place(NamedTuple):
    """Where a job is."""

    project: str
    location: str

    @property
    def parent(self) -> str:
        """As calls name it."""
        return f"projects/{self.project}/locations/{self.location}"


class Job:
    """Changed by its own thread and by calls; for any thread."""

    def __init__(self, place: Place, native: dict[str, Any], seed: str, faults: JobFaults, error_delay: float) -> None:
        """``seed``: something of no other job. ``error_delay``: real seconds from the end until ``error`` is there."""
        self.place, self.native, self.faults = place, native, faults
        self.replicas = _replicas(native, seed)
        self.id = self.replicas[0].contract.env["CLOUD_ML_JOB_ID"]
        self.name = f"{place.parent}/customJobs/{self.id}"
        self.cancelled = threading.Event()
        """Somebody wants it to end."""
        self.ran_since: float | None = None
        """When its containers ran for the first time, by the monotonic clock."""
        self._error_delay = error_delay
        self._lock = threading.RLock()
        self._state = ""
        self._times: dict[str, int] = {"createTime": time.time_ns()}
        self._error: dict[str, object] = {}
        self._answers_while_running = 0
        self._is_watched = self._is_seen = False
        self.enter(QUEUED)

    @property
    def state(self) -> str:
        """By name, as it is."""
        return self._state

    @property
    def was_seen(self) -> bool:
        """Whether those who watch it, if there are any, have seen that it came into the state that it is in."""
        return self._is_seen or not self._is_watched

    def enter(self, state: str) -> bool:
        """Whether the job is in that state now: one that is being cancelled, or is over, is not taken out of it."""
        with self._lock:
            if self._state in FINAL or (self._state == CANCELLING and state not in FINAL):
                return False
            now = self._times["updateTime"] = time.time_ns()
            self._state, self._is_seen = state, False
            if state == RUNNING:
                self._times.setdefault("startTime", now)
                self.ran_since = self.ran_since or time.monotonic()
            if state in FINAL:
                self._times["endTime"] = now
            return True

    def end(self, ending: Ending) -> None:
        """It is over."""
        with self._lock:
            self._error = ending.error
            self.enter(ending.state)

    def cancel(self) -> None:
        """Ask for the end; nothing where there has been one."""
        with self._lock:
            if self.enter(CANCELLING):
                self.cancelled.set()

    def resource(self, *, polled: bool = False) -> dict[str, Any]:
        """The CustomJob as JSON, enums by name. ``polled``: count it as one look at how the job stands."""
        with self._lock:
            if polled:
                self._is_watched = self._is_seen = True
            found = {"name": self.name, **copy.deepcopy(self.native), "state": self._shown_state(polled)}
            found |= {name: rfc3339(moment) for name, moment in self._times.items()}
            if self._error and time.time_ns() >= self._times["endTime"] + self._error_delay * 1e9:
                found["error"] = dict(self._error)
            return found

    def _shown_state(self, polled: bool) -> str:
        if not polled or self._state != RUNNING or not self.faults.unknown_state:
            return self._state
        self._answers_while_running += 1
        return self.faults.unknown_state if self._answers_while_running - 1 in _SHOWN_UNKNOWN else self._state


def _replicas(native: dict[str, Any], seed: str) -> list[Replica]:
    """All of them, pool by pool, with what each finds; the job's number is made from ``seed``."""
    request = Request("vertex", seed, native, {}, ())
    places = [
        (f"workerpool{pool}-{number}", spec)
        for pool, spec in enumerate(entries(native, "jobSpec", "workerPoolSpecs"))
        for number in range(int64(spec, "replicaCount") or 0)
    ]
    return [Replica(task, spec, node_contract(request, node)) for node, (task, spec) in enumerate(places)]
