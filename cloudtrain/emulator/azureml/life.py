"""One job's life, as a thread: through its states, its starts and its end.

NotStarted -> Starting -> Preparing -> Queued -> Running -> Finalizing -> Completed
                                         ^---------'  low-priority machines were taken away

``Provisioning`` is in the enumeration and, says its documentation, not used today.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import threading
import time
import traceback
from typing import TYPE_CHECKING

from cloudtrain.emulator.azureml import endings
from cloudtrain.emulator.azureml.admission import impossible
from cloudtrain.emulator.azureml.blobs import Place
from cloudtrain.emulator.azureml.endings import Ending
from cloudtrain.emulator.azureml.jobs import Job
from cloudtrain.emulator.azureml.logfiles import LogFiles, log_name
from cloudtrain.emulator.azureml.nodefolders import NodeFolders
from cloudtrain.emulator.azureml.workspace import CLUSTERS, Workspace
from cloudtrain.emulator.base import NodePlan, Site
from cloudtrain.providers.azureml.reading import cluster, nodes
from cloudtrain.providers.reading import text

if TYPE_CHECKING:
    from cloudtrain.emulator.nodes import Nodes

# Seconds of the service's time, rounded from what its users see.
_ACCEPTING = 3.0
_STARTING = 5.0
_BUILDING = 120.0
_PULLING = 20.0
_QUEUED = 60.0
_QUEUED_IN_VAIN = 900.0
_FINALIZING = 15.0
_GRACE = 30.0
"""From SIGTERM to SIGKILL: nothing is documented, so it is what container runtimes usually give or a little more."""
_NOTICING = 60.0
"""From the loss of a node until the service ends the others."""

_LEAST_GRACE = 10.0
"""Real seconds: programs are not faster here than there."""
_OTHERS_END = 40.0
"""Real seconds: after one node's process has failed, for the launchers of the others to end by themselves."""
_LOOK_SECONDS = 0.1
_SYNC_SECONDS = 1.0


class Life(threading.Thread):
    """Started when a job has been taken; ends with it."""

    def __init__(self, job: Job, site: Site, workspace: Workspace, code: Place | None, images: Images) -> None:
        super().__init__(name=f"azureml {job.name}", daemon=True)
        self._job = job
        self._site = site
        self._images = images
        self._folder = site.folder / "jobs" / job.name
        self._folders = NodeFolders(job, workspace, code, self._folder, self._left_out)
        odd = site.faults.logs("azureml")
        self._logs = LogFiles(job, workspace.blobs, workspace.artifacts(job.name), site.clock, odd)
        self._plans: list[NodePlan] = []
        """Of the start that is next, or goes on."""
        self._abandoned = False

    def abandon(self) -> None:
        """The emulator is closed: end whatever runs, and forget the job."""
        self._abandoned = True
        self._job.stop.set()

    def run(self) -> None:
        """See the module's text."""
        try:
            ending = self._until_end()
            if self._job.started and not self._abandoned:
                self._wait("Finalizing", 0)
                self._logs.end()
                self._folders.collect()
                self._site.clock.wait(_FINALIZING, threading.Event())
        except _Stopped:
            ending = endings.CANCELED
        except Exception as error:  # noqa: BLE001 - whatever it is, a job that hangs for ever would hide it
            self._note(traceback.format_exc())
            ending = endings.broken(repr(error))
        if not self._abandoned:
            self._note(f"job is {ending.state}")
            self._job.move(*ending)
            self._logs.settle()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _note(self, text: str) -> None:
        """A line of the platform's; without one, if it is the log itself that is broken."""
        with contextlib.suppress(Exception):
            self._logs.note(text)

    def _left_out(self, path: str, kind: str) -> None:
        """Of what the job has written, what cannot be stored: said once, in the log and where warnings are shown."""
        text = f"{path} is {kind}, which cannot be stored: it is left out"
        if text not in self._job.warnings:
            self._job.warnings = [*self._job.warnings, text]
            self._note(text)

    def _until_end(self) -> Ending:
        """Raises _Stopped if someone asks for the end before anything runs."""
        self._wait("NotStarted", _ACCEPTING)
        self._wait("Starting", _STARTING)
        if ending := self._prepared():
            return ending
        start, ending = 0, None
        while ending is None:
            ending = self._queued(start) or self._one_start(start)
            start += 1
        return ending

    def _prepared(self) -> Ending | None:
        self._wait("Preparing", self._images.preparation(self._job))
        if self._job.faults.image_missing:
            return endings.no_image(_image(self._job))
        reason = next(impossible(self._job.form), None)
        return endings.failed(reason) if reason else None

    def _queued(self, start: int) -> Ending | None:
        """Until the machines are there, or not to be had. What they are to find is fetched meanwhile."""
        count, name = nodes(self._job.form), cluster(self._job.form)
        too_many = name in CLUSTERS and count > CLUSTERS[name].most_nodes
        if self._job.faults.refuse == "capacity" or too_many:
            self._wait("Queued", _QUEUED_IN_VAIN)
            return endings.no_capacity(name or text(self._job.form, "resources", "instance_type"), count)
        self._wait("Queued", 0)
        begun = time.monotonic()
        try:
            self._plans = self._folders.start(start)
        except LookupError as error:
            return endings.no_data(str(error.args[0]))
        self._wait("Queued", max(_QUEUED - (time.monotonic() - begun) * self._site.clock.speed, 0))
        return None

    def _one_start(self, start: int) -> Ending | None:
        """How it ended; None if the job is to be started anew."""
        names = [log_name(node, len(self._plans), start) for node in range(len(self._plans))]
        containers = self._site.start_nodes(self._plans)
        try:
            for name, plan in zip(names, self._plans, strict=True):
                self._logs.follow(name, plan.log)
            self._wait("Running", 0)
            return self._watched(_Start(containers, names, start))
        finally:
            containers.close()
            self._logs.end()

    def _watched(self, start: _Start) -> Ending | None:
        """Look after the nodes until all have ended."""
        while True:
            self._carry(start)
            if self._abandoned:
                return endings.CANCELED
            start.look()
            if start.over:
                return self._ended(start)
            if self._job.stop.is_set():
                self._terminate(start)
                return endings.CANCELED
            if self._is_late():
                self._job.move("CancelRequested")
                self._terminate(start)
                return endings.timed_out(self._job.form["limits"]["timeout"])
            if self._is_taken(start):
                return self._take(start)
            self._lose(start)
            if start.is_to_end(self._site.clock.scaled(_NOTICING)):
                self._terminate(start)
            self._job.stop.wait(_LOOK_SECONDS)

    def _carry(self, start: _Start) -> None:
        """Logs and mounts, as they change."""
        self._logs.pump()
        if time.monotonic() - start.synced >= _SYNC_SECONDS:
            self._folders.mounts.sync()
            start.synced = time.monotonic()

    def _is_late(self) -> bool:
        """Whether the job's own limit is reached; real seconds, and all starts together."""
        limit = self._job.form.get("limits", {}).get("timeout")
        return bool(limit and self._job.started and time.time() - self._job.started >= limit)

    def _is_taken(self, start: _Start) -> bool:
        planned = self._job.faults.preempt
        return start.number < len(planned) and start.age >= planned[start.number].at

    def _take(self, start: _Start) -> Ending | None:
        """Low-priority machines go: with notice the job is started anew, without it the job has failed. Users of the
        service have seen both."""
        self._note(f"start {start.number} is pre-empted")
        self._job.faults.preempt[start.number].happens()
        if self._job.faults.preempt[start.number].notice:
            self._terminate(start)
            return None
        start.containers.kill()
        return endings.preempted()

    def _lose(self, start: _Start) -> None:
        for loss in self._job.faults.lose:
            is_due = start.number == 0 and start.lost is None and start.age >= loss.at
            if is_due and loss.node < len(start.names):
                self._note(f"node {loss.node} is lost")
                loss.happens()
                start.containers.signal(signal.SIGKILL, loss.node)
                start.lost = loss.node

    def _terminate(self, start: _Start) -> None:
        """SIGTERM to the first process of every node, SIGKILL to all after the grace."""
        start.containers.signal(signal.SIGTERM)
        until = time.monotonic() + max(self._site.clock.scaled(_GRACE), _LEAST_GRACE)
        while not start.containers.wait(_LOOK_SECONDS) and time.monotonic() < until and not self._abandoned:
            self._carry(start)
        start.containers.kill()

    def _ended(self, start: _Start) -> Ending:
        if start.lost is not None:
            return endings.node_lost(start.lost)
        if start.failed is None:
            return endings.COMPLETED
        return endings.exited(start.failed[1], self._logs.tail(start.names[start.failed[0]], endings.LONGEST_MESSAGE))

    def _wait(self, state: str, seconds: float) -> None:
        """Be in a state. Raises _Stopped if someone asks for the end meanwhile."""
        if state != self._job.state:
            self._note(f"job is {state}")
        self._job.move(state)
        if seconds and self._site.clock.wait(seconds, self._job.stop):
            raise _Stopped


class _Stopped(Exception):
    """Someone asked for the end while nothing ran."""


class _Start:
    """One start of a job, and what has been seen of it."""

    def __init__(self, containers: Nodes, names: list[str], number: int) -> None:
        self.containers = containers
        self.names = names
        """Of the nodes' log files."""
        self.number = number
        self.synced = time.monotonic()
        self.lost: int | None = None
        self.failed: tuple[int, int] | None = None
        """The first node that failed, and its exit status."""
        self.over = False
        self._began = time.monotonic()
        self._failed_at = 0.0

    @property
    def age(self) -> float:
        """Seconds since the containers were started."""
        return time.monotonic() - self._began

    def look(self) -> None:
        """See which nodes have ended."""
        ended = self.containers.poll()
        if not self._failed_at and any(ended.values()):
            self._failed_at = time.monotonic()
            self.failed = next((node, status) for node, status in ended.items() if status)
        self.over = len(ended) == len(self.names)

    def is_to_end(self, noticing: float) -> bool:
        """Whether a node has failed or is lost for so long that the service ends the others."""
        patience = noticing if self.lost is not None else _OTHERS_END
        return bool(self._failed_at) and time.monotonic() - self._failed_at > patience


class Images:
    """What has been built or pulled before need not be again."""

    def __init__(self) -> None:
        self._there: set[str] = set()
        self._lock = threading.Lock()

    def preparation(self, job: Job) -> float:
        """Seconds of the service's that a job's environment takes now."""
        environment = job.form["environment"]
        built = isinstance(environment, dict) and environment.keys() != {"image"}
        with self._lock:
            if str(environment) in self._there:
                return _PULLING / 2
            self._there.add(str(environment))
        return _BUILDING if built else _PULLING


def _image(job: Job) -> str:
    environment = job.form["environment"]
    return str(environment.get("image", "") if isinstance(environment, dict) else environment)
