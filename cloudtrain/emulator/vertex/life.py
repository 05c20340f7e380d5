"""A job's life, in a thread of its own: queue, machines, containers, restarts, the end.

    QUEUED -> PENDING -> RUNNING -> SUCCEEDED | FAILED
                 ^----------'   an attempt was lost, and the service tries again
    CANCELLING -> CANCELLED from anywhere before the end

What the service takes is shortened by the clock; what the job takes, and the timeout it asks for, is not.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
import traceback
from typing import NamedTuple

from cloudtrain.emulator.base import Site
from cloudtrain.emulator.vertex import wording
from cloudtrain.emulator.vertex.containers import launcher_of
from cloudtrain.emulator.vertex.jobs import PENDING, Job
from cloudtrain.emulator.vertex.logs import EntryLog
from cloudtrain.emulator.vertex.restarts import Again, Fate, Restarts
from cloudtrain.emulator.vertex.start import Start
from cloudtrain.emulator.vertex.storage import Storage
from cloudtrain.emulator.vertex.wording import Ending
from cloudtrain.errors import CloudtrainError
from cloudtrain.providers.reading import text

# Seconds that the service takes, by transcripts of real jobs (2026): about 3 minutes to the first line of the
# container, one from its last to the end of the job.
_QUEUED, _PROVISIONING, _TEARDOWN = 10.0, 150.0, 60.0
_SEEN_SECONDS, _LOOK_SECONDS = 10.0, 0.05
"""Real ones, that a job waits at most until who watches it has seen that it is being restarted."""
ERROR_DELAY = 60.0
"""From the end of a job until its ``error`` is set (Google's page on how the service handles errors)."""


class Surroundings(NamedTuple):
    """What all jobs share."""

    site: Site
    log: EntryLog
    storage: Storage
    closing: threading.Event
    """The emulator is going."""
    services: dict[str, str]
    """Variables by which containers find Google's services, as far as they are here."""


class Life:
    """From create to the end."""

    def __init__(self, job: Job, around: Surroundings) -> None:
        self._job = job
        self._around = around
        self._outputs: dict[str, str] = {}
        self._folder = around.site.folder / "jobs" / job.id
        self._thread = threading.Thread(target=self._live, name=f"custom job {job.id}", daemon=True)

    def begin(self) -> None:
        """Return at once."""
        self._thread.start()

    def join(self) -> None:
        """Wait for the end."""
        self._thread.join()

    def _live(self) -> None:
        try:
            ending = self._ending()
        except CloudtrainError as error:  # this machine cannot run nodes
            ending = wording.unable(str(error))
        except Exception:  # noqa: BLE001 - a fault of ours must end the job, and be seen
            traceback.print_exc(file=sys.stderr)
            ending = wording.internal()
        self._tell_end(ending)
        self._job.end(ending)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _ending(self) -> Ending:
        job, faults = self._job, self._job.faults
        self._say(*wording.QUEUED)
        if self._wait(_QUEUED):
            return wording.cancelled()
        restarts, fate = Restarts(job.native), Fate("preempted", 0)
        again: Again = "job"
        number = 0
        while again:
            if again == "job" and self._wait_for_machines():
                return wording.cancelled()
            if faults.refuse != "capacity":
                found = self._start(number)
                if isinstance(found, Ending):
                    return found
                fate, number = found, number + 1
            again = restarts.after(fate)
        return self._given_up(fate)

    def _wait_for_machines(self) -> bool:
        """Whether somebody wants the end instead."""
        if self._job.enter(PENDING):
            self._say(wording.PREPARING)
        return self._wait(_PROVISIONING) or (self._job.ran_since is not None and self._wait_to_be_seen())

    def _wait_to_be_seen(self) -> bool:
        """On the service machines take minutes: whoever watches sees that a job waits for them again. So here, too."""
        until = time.monotonic() + _SEEN_SECONDS
        while not self._job.was_seen and time.monotonic() < until:
            self._job.cancelled.wait(_LOOK_SECONDS)
        return self._job.cancelled.is_set()

    def _start(self, number: int) -> Fate | Ending:
        """Run all containers once."""
        job = self._job
        for replica in job.replicas:
            if job.faults.image_missing:
                return wording.image_missing(replica.task, text(replica.spec, "containerSpec", "imageUri"))
            if not launcher_of(replica.spec):
                return wording.not_emulated(replica.task)
        start = Start(job, number, self._folder / str(number), self._around)
        try:
            return start.run()
        finally:
            self._outputs = start.outputs()

    def _given_up(self, fate: Fate) -> Ending:
        job = self._job
        if fate.kind == "exited":
            task = job.replicas[fate.replica].task
            page = wording.logs_page(job.place.project, job.id)
            return wording.exited(task, fate.status, self._outputs[task], page)
        if fate.kind == "lost":
            return wording.internal()
        return wording.stock_out(job.place.location)

    def _tell_end(self, ending: Ending) -> None:
        if ending.state == "JOB_STATE_FAILED":
            self._say(ending.message, severity="ERROR")
        elif ending.state == "JOB_STATE_SUCCEEDED":
            self._say(wording.TEARING_DOWN)
            self._around.site.clock.wait(_TEARDOWN, self._around.closing)
            self._say(wording.TORN_DOWN, wording.SUCCEEDED)
        else:
            self._say(wording.CANCELLED)

    def _wait(self, service_seconds: float) -> bool:
        return self._around.site.clock.wait(service_seconds, self._job.cancelled)

    def _say(self, *lines: str, severity: str = "INFO") -> None:
        for line in lines:
            payload = {"jsonPayload": {"message": line}}
            self._around.log.append(
                self._job.place.project, self._job.id, wording.SERVICE, payload, severity, late=False
            )
