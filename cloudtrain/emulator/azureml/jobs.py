"""Jobs as ARM and run history show them: what was received, and how it stands."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from cloudtrain.emulator.azureml.workspace import ARTIFACT_STORE, PROVIDER, Workspace
from cloudtrain.emulator.faults import JobFaults

FINAL = frozenset({"Completed", "Failed", "Canceled"})
CHANGEABLE = ("description", "tags", "displayName", "properties", "isArchived")
"""What an existing job takes from a second PUT of its name, and run history from a PATCH."""
_ODD_POLLS = 3
"""For how many looks an unknown state is shown."""


class Job:
    """One job. Its life's thread moves it on; any thread may look."""

    def __init__(self, name: str, received: Mapping[str, Any], form: Mapping[str, Any], faults: JobFaults) -> None:
        """``received``: ``properties`` of the PUT. ``form``: the same as the form of the vendor's CLI."""
        self.name = name
        self.received = dict(received)
        self.form = form
        self.faults = faults
        self.created = time.time()
        self.started: float | None = None
        self.ended: float | None = None
        self.error: dict[str, Any] | None = None
        self.outputs: dict[str, str] = {}
        """Output -> the URI where it lies, also where the service has chosen it."""
        self.warnings: list[str] = []
        """What the platform has to say of it besides."""
        self.log_files: dict[str, str] = {}
        """Name -> URL."""
        self.stop = threading.Event()
        """Set when someone has asked for the end."""
        self._state = "NotStarted"
        self._odd = _ODD_POLLS if faults.unknown_state else 0
        self._lock = threading.Lock()

    @property
    def state(self) -> str:
        """Where it stands."""
        return self._state

    @property
    def over(self) -> bool:
        """Whether nothing will change any more."""
        return self._state in FINAL

    def move(self, state: str, error: Mapping[str, Any] | None = None) -> None:
        """To the next state; what has been asked to end shows nothing but that until it has."""
        with self._lock:
            if self._state in FINAL or (self._state == "CancelRequested" and state not in FINAL):
                return
            if state == "Running" and self.started is None:
                self.started = time.time()
            if state in FINAL:
                self.ended = time.time()
                self.error = dict(error) if error else None
            self._state = state

    def cancel(self) -> None:
        """Ask for its end; no matter if it is over."""
        self.move("CancelRequested")
        self.stop.set()

    def shown_state(self) -> str:
        """As a caller sees it: for some looks at a running job, what the fault file has."""
        with self._lock:
            if self._state == "Running" and self._odd:
                self._odd -= 1
                return self.faults.unknown_state or self._state
            return self._state

    def change(self, given: Mapping[str, Any]) -> None:
        """Take what may change; tags and properties are merged, and never removed."""
        with self._lock:
            for name in CHANGEABLE:
                if name in ("tags", "properties") and isinstance(given.get(name), Mapping):
                    self.received[name] = {**(self.received.get(name) or {}), **given[name]}
                elif given.get(name) is not None and name not in ("tags", "properties"):
                    self.received[name] = given[name]

    def document(self, workspace: Workspace) -> dict[str, Any]:
        """The ARM resource."""
        received = self.received
        outputs = {name: dict(item) for name, item in (received.get("outputs") or {}).items()}
        for name, uri in self.outputs.items():
            outputs[name]["uri"] = uri
        if self.over:
            # While a job runs, the vendor's `jobs.stream` would turn from our log URLs to this place, and so to the
            # public cloud's storage: no setting leads it elsewhere.
            uri = f"azureml://datastores/{ARTIFACT_STORE}/ExperimentRun/dcid.{self.name}"
            outputs["default"] = {"jobOutputType": "uri_folder", "mode": "ReadWriteMount", "uri": uri}
        studio = f"https://ml.azure.com/runs/{self.name}?wsid={workspace.arm_id}"
        who = {"createdBy": "emulator", "createdByType": "User", "createdAt": stamp(self.created)}
        return {
            "id": workspace.below("jobs", self.name),
            "name": self.name,
            "type": f"{PROVIDER}/workspaces/jobs",
            "systemData": who,
            "properties": {
                **received,
                "status": self.shown_state(),
                "outputs": outputs,
                "services": {
                    **(received.get("services") or {}),
                    "Tracking": {"jobServiceType": "Tracking", "endpoint": f"azureml://127.0.0.1{workspace.arm_id}"},
                    "Studio": {"jobServiceType": "Studio", "endpoint": studio},
                },
            },
        }

    def details(self) -> dict[str, Any]:
        """Run history's view."""
        error = {"error": {"error": self.error, "time": stamp(self.ended)}} if self.error else {}
        return {
            "runId": self.name,
            "target": self.received.get("computeId", "serverless").rpartition("/")[2],
            "status": self.shown_state(),
            "createdTimeUtc": stamp(self.created),
            "startTimeUtc": stamp(self.started),
            "endTimeUtc": stamp(self.ended),
            **error,
            "warnings": [{"source": "data-capability", "message": message} for message in self.warnings],
            "tags": self.received.get("tags") or {},
            "properties": self.received.get("properties") or {},
            "logFiles": dict(self.log_files),
            "outputs": {name: {"assetId": uri, "type": "UriFolder"} for name, uri in self.outputs.items()},
        }


class Jobs:
    """All of them."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self.lock = threading.RLock()
        """To be held around a look for a name and what follows from it."""

    def add(self, job: Job) -> None:
        """Keep it."""
        with self.lock:
            self._jobs[job.name] = job

    def get(self, name: str) -> Job | None:
        """By name."""
        with self.lock:
            return self._jobs.get(name)

    def remove(self, name: str) -> None:
        """Forget it."""
        with self.lock:
            self._jobs.pop(name, None)

    def newest_first(self) -> Iterator[Job]:
        """All, as the service lists them."""
        with self.lock:
            yield from reversed(self._jobs.values())


def stamp(when: float | None) -> str | None:
    """As the service writes it."""
    return datetime.fromtimestamp(when, timezone.utc).isoformat().replace("+00:00", "Z") if when else None
