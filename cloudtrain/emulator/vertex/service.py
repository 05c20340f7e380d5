"""JobService: what its five calls on CustomJobs do, whatever they come in by."""

from __future__ import annotations

import base64
import binascii
import secrets
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from cloudtrain.emulator.base import TakenJob
from cloudtrain.emulator.vertex import filters, validation, wording
from cloudtrain.emulator.vertex.errors import ServiceError
from cloudtrain.emulator.vertex.jobs import FINAL, Job, Place
from cloudtrain.emulator.vertex.life import ERROR_DELAY, Life, Surroundings
from cloudtrain.emulator.vertex.messages import canonical
from cloudtrain.providers.reading import entries, text
from cloudtrain.providers.vertex.reading import named
from cloudtrain.providers.vertex.rules.pools import ACCELERATORS
from cloudtrain.providers.vertex.rules.scheduling import STRATEGIES

_PAGE, _MOST_JOBS = 100, 1000
_FIELDS = {
    "name": "name",
    "display_name": "displayName",
    "state": "state",
    "create_time": "createTime",
    "start_time": "startTime",
    "end_time": "endTime",
    "update_time": "updateTime",
    "labels": "labels",
}
"""What a list may be filtered by -> its name in JSON."""


class Listed(NamedTuple):
    """One page of a list."""

    jobs: list[dict[str, Any]]
    next_token: str


class JobService:
    """All jobs. For any thread. Every method raises ServiceError."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._lock = threading.Lock()
        self._jobs: dict[str, tuple[int, Job]] = {}
        self._lives: list[Life] = []
        self._count = 0
        self.requests: list[dict[str, Any]] = []
        """The bodies of all creates, also of those that were refused, in the canonical JSON form: enums by name, an
        int64 as text, no defaults."""

    def create(self, place: Place, body: Any) -> dict[str, Any]:
        """A new job, however many have its name. ``body``: JSON, or a CustomJob message as ``canonical`` has it."""
        validation.parent_of(place.project, place.location)
        received = canonical(body)
        self.requests.append(received)
        native = validation.wanted(received)
        validation.refuse_flaws(native)
        faults = self._around.site.faults.job("vertex", text(native, "displayName"))
        if faults.refuse == "quota":
            raise ServiceError("RESOURCE_EXHAUSTED", _quota(native))
        job = Job(place, native, secrets.token_hex(16), faults, self._around.site.clock.scaled(ERROR_DELAY))
        life = Life(job, self._around)
        with self._lock:
            if self._around.closing.is_set():
                raise ServiceError("UNAVAILABLE", "The service is going down.")
            self._count += 1
            self._jobs[job.name] = self._count, job
            self._lives.append(life)
            answer = job.resource()
            life.begin()
        return answer

    def get(self, name: str) -> dict[str, Any]:
        """One look at a job."""
        return self._job(name).resource(polled=True)

    def list(self, place: Place, filter_: str = "", size: int = 0, token: str = "") -> Listed:
        """Newest first."""
        parent = f"{validation.parent_of(place.project, place.location)}/"
        wanted = filters.parse(filter_)
        if size < 0:
            raise ServiceError("INVALID_ARGUMENT", f"page_size must not be negative, and is {size}")
        size = min(size or _PAGE, _MOST_JOBS)
        before = _read_token(token)
        with self._lock:
            kept = sorted(self._jobs.values(), key=lambda found: found[0], reverse=True)
        found = [
            (number, resource)
            for number, job in kept
            if job.name.startswith(parent) and (before is None or number < before)
            if wanted.matches(_Fields(resource := job.resource()))
        ]
        more = base64.urlsafe_b64encode(str(found[size - 1][0]).encode()).decode() if len(found) > size else ""
        return Listed([resource for _, resource in found[:size]], more)

    def cancel(self, name: str) -> None:
        """Ask for the end."""
        self._job(name).cancel()

    def delete(self, name: str) -> dict[str, Any]:
        """Forget a job that is over. Returns the operation, done."""
        job = self._job(name)
        if job.state not in FINAL:
            message = f"The CustomJob {name} is in state {job.state} and cannot be deleted: cancel it first."
            raise ServiceError("FAILED_PRECONDITION", message)
        with self._lock:
            self._jobs.pop(name, None)
        return {
            "name": f"{job.place.parent}/operations/{job.id}",
            "done": True,
            "metadata": {"@type": "type.googleapis.com/google.cloud.aiplatform.v1.DeleteOperationMetadata"},
            "response": {"@type": "type.googleapis.com/google.protobuf.Empty"},
        }

    def jobs(self) -> Sequence[TakenJob]:
        """Those that nobody has deleted, by the names that their users gave them."""
        with self._lock:
            return [TakenJob(text(job.native, "displayName"), job.state in FINAL) for _, job in self._jobs.values()]

    def close(self) -> None:
        """End all jobs, at once, and wait for them."""
        with self._lock:
            self._around.closing.set()
            for _, job in self._jobs.values():
                job.cancelled.set()
        for life in self._lives:
            life.join()

    def _job(self, name: str) -> Job:
        with self._lock:
            found = self._jobs.get(name)
        if found is None:
            raise ServiceError("NOT_FOUND", f"The CustomJob {name} does not exist.")
        return found[1]


class _Fields:
    """The fields of a job, for filters."""

    def __init__(self, resource: dict[str, Any]) -> None:
        self._resource = resource

    def __call__(self, path: tuple[str, ...]) -> Any:
        name = _FIELDS.get(path[0])
        if name is None or (len(path) == 2) != (name == "labels") or len(path) > 2:
            raise ServiceError("INVALID_ARGUMENT", f"Invalid filter: {'.'.join(path)} is no field to filter by.")
        found = self._resource.get(name)
        return (found or {}).get(path[1]) if name == "labels" else found


def _read_token(token: str) -> int | None:
    try:
        return int(base64.urlsafe_b64decode(token)) if token else None
    except (ValueError, binascii.Error) as error:
        raise ServiceError("INVALID_ARGUMENT", "page_token is none of ours") from error


def _quota(native: dict[str, Any]) -> str:
    pools: Sequence[Any] = entries(native, "jobSpec", "workerPoolSpecs")
    spot = named(native, STRATEGIES, "jobSpec", "scheduling", "strategy") in ("SPOT", "FLEX_START")
    return wording.quota(named(pools[0], ACCELERATORS, "machineSpec", "acceleratorType"), spot)
