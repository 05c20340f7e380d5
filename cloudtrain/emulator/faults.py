"""What is to go wrong, and when: asked by ``web.py`` for every call and by the planes for every job.

Everything may be asked from any thread. The same file and the same order of questions give the same faults.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from cloudtrain.emulator.faultfile import CallEntry, CallKind, FaultFile, JobEntry, LogKind

_STATUS: Mapping[str, Mapping[str, int]] = {
    "throttle": {"sagemaker": 400, "": 429},
    "expired-token": {"sagemaker": 400, "": 401},
    "error": {"": 500},
}
"""HTTP status by fault and provider. AWS's JSON protocol tells both by the error's code, with status 400."""


class CallFault(NamedTuple):
    """What happens to one call."""

    kind: CallKind
    status: int = 0
    """The HTTP status of ``throttle``, ``expired-token`` and ``error``, as the service has it."""
    seconds: float = 0.0
    """Of ``slow``; real seconds."""


class Preemption(NamedTuple):
    """How a start of a job is ended by the service."""

    at: float
    """Real seconds after its containers were started."""
    notice: bool
    """Whether they get SIGTERM and the service's grace, or SIGKILL at once."""


class Loss(NamedTuple):
    """A node that goes, in a job's first start."""

    node: int
    at: float
    """Real seconds after the containers were started."""


class JobFaults(NamedTuple):
    """What happens to one job."""

    refuse: Literal["quota", "capacity"] | None = None
    """Why there are no machines: at create, or later, as the service does it."""
    image_missing: bool = False
    preempt: tuple[Preemption, ...] = ()
    """By the number of the start, from 0: start ``k`` is preempted if there is a ``preempt[k]``."""
    lose: tuple[Loss, ...] = ()
    unknown_state: str | None = None
    """Shown for a few polls in the middle."""


class Faults:
    """All of them."""

    def __init__(self, file: FaultFile | None = None) -> None:
        self._calls = [_Calls(entry, number) for number, entry in enumerate(file.calls if file else ())]
        self._jobs = [_Jobs(entry) for entry in (file.jobs if file else ())]
        self._logs = file.logs if file else ()
        self._lock = threading.Lock()

    @classmethod
    def none(cls) -> Faults:
        """Nothing goes wrong."""
        return cls()

    @classmethod
    def load(cls, path: Path) -> Faults:
        """From a file, see ``faultfile.py``. Raises JobFileError with all that is wrong in it."""
        from cloudtrain.emulator import faultfile

        return cls(faultfile.load(path))

    def call(self, provider: str, operation: str) -> CallFault | None:
        """What happens to this call, which counts as one; the first entry that applies. "" is no call."""
        if not operation:
            return None
        with self._lock:
            for entry in self._calls:
                if entry.applies(provider, operation):
                    return entry.fault(provider)
        return None

    def job(self, provider: str, name: str) -> JobFaults:
        """What happens to the job with this native name. To be asked once for each create that was received."""
        with self._lock:
            return _together([jobs.entry for jobs in self._jobs if jobs.applies(provider, name)])

    def logs(self, provider: str) -> frozenset[LogKind]:
        """How this provider's logs misbehave."""
        return frozenset(entry.fault for entry in self._logs if entry.provider in (None, provider))


class _Calls:
    """An entry for calls, with what is left of it."""

    def __init__(self, entry: CallEntry, number: int) -> None:
        self._entry = entry
        self._left = entry.times or 1
        self._random = random.Random(number)

    def applies(self, provider: str, operation: str) -> bool:
        entry = self._entry
        if entry.provider not in (None, provider) or not fnmatchcase(operation, entry.operation):
            return False
        if entry.share is not None:
            return self._random.random() < entry.share
        self._left -= 1
        return self._left >= 0

    def fault(self, provider: str) -> CallFault:
        entry = self._entry
        by_provider = _STATUS.get(entry.fault, {"": 0})
        status = entry.status or by_provider.get(provider, by_provider[""])
        return CallFault(entry.fault, status, entry.seconds or 0.0)


class _Jobs:
    """An entry for jobs, with what is left of it."""

    def __init__(self, entry: JobEntry) -> None:
        self.entry = entry
        self._left = None if entry.fault.startswith("preempt") else entry.times

    def applies(self, provider: str, name: str) -> bool:
        if self.entry.provider not in (None, provider) or not fnmatchcase(name, self.entry.name):
            return False
        if self._left is None:
            return True
        self._left -= 1
        return self._left >= 0


def _together(entries: Sequence[JobEntry]) -> JobFaults:
    found = JobFaults()
    for entry in entries:
        if entry.fault in ("quota", "capacity"):
            found = found._replace(refuse=found.refuse or ("quota" if entry.fault == "quota" else "capacity"))
        elif entry.fault == "image-missing":
            found = found._replace(image_missing=True)
        elif entry.fault == "unknown-state":
            found = found._replace(unknown_state=entry.state)
        elif entry.fault == "lose-node":
            found = found._replace(lose=(*found.lose, Loss(entry.node or 0, entry.at)))
        else:
            each = Preemption(entry.at, notice=entry.fault == "preempt")
            found = found._replace(preempt=(*found.preempt, *[each] * (entry.times or 1)))
    return found
