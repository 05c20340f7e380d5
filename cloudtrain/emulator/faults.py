"""What is to go wrong, and when: asked by ``web.py`` for every call and by the planes for every job.

Everything may be asked from any thread. The same file and the same order of questions give the same faults.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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


def _unheard() -> None:
    """Nobody asks whether it has happened."""


@dataclass(frozen=True)
class Preemption:
    """How a start of a job is ended by the service."""

    at: float
    """Real seconds after its containers were started."""
    notice: bool
    """Whether they get SIGTERM and the service's grace, or SIGKILL at once."""
    happens: Callable[[], object] = field(default=_unheard, compare=False, repr=False)
    """To be called when it does."""


@dataclass(frozen=True)
class Loss:
    """A node that goes, in a job's first start."""

    node: int
    at: float
    """Real seconds after the containers were started."""
    happens: Callable[[], object] = field(default=_unheard, compare=False, repr=False)
    """To be called when it does."""


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
            return _together([jobs for jobs in self._jobs if jobs.applies(provider, name)])

    def logs(self, provider: str) -> frozenset[LogKind]:
        """How this provider's logs misbehave."""
        return frozenset(entry.fault for entry in self._logs if entry.provider in (None, provider))

    def unused(self) -> list[str]:
        """What has not happened so far, of calls and jobs: each with its place in the file, and in words."""
        sections: Mapping[str, Sequence[_Calls | _Jobs]] = {"calls": self._calls, "jobs": self._jobs}
        return [
            f"{section}[{number}] ({each.words})"
            for section, entries in sections.items()
            for number, each in enumerate(entries)
            if not each.happened
        ]


class _Calls:
    """An entry for calls, with what is left of it."""

    def __init__(self, entry: CallEntry, number: int) -> None:
        self._entry = entry
        self._left = entry.times or 1
        self._random = random.Random(number)
        self.happened = False

    @property
    def words(self) -> str:
        return _words(self._entry.fault, self._entry.operation, self._entry.provider)

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
        self.happened = True
        return CallFault(entry.fault, status, entry.seconds or 0.0)


class _Jobs:
    """An entry for jobs, with what is left of it."""

    def __init__(self, entry: JobEntry) -> None:
        self.entry = entry
        self._left = None if entry.fault.startswith("preempt") else entry.times
        self.happened = False

    @property
    def words(self) -> str:
        return _words(self.entry.fault, self.entry.name, self.entry.provider)

    def applies(self, provider: str, name: str) -> bool:
        if self.entry.provider not in (None, provider) or not fnmatchcase(name, self.entry.name):
            return False
        if self._left is None:
            return True
        self._left -= 1
        return self._left >= 0

    def happens(self) -> None:
        self.happened = True


def _words(fault: str, name: str, provider: str | None) -> str:
    return f"{fault} of {name}" + (f" on {provider}" if provider else "")


def _together(all_of_them: Sequence[_Jobs]) -> JobFaults:
    """What comes at a time of its own tells when it does; the rest happens to any job that gets so far."""
    found = JobFaults()
    for each in all_of_them:
        entry = each.entry
        if entry.fault == "lose-node":
            found = found._replace(lose=(*found.lose, Loss(entry.node or 0, entry.at, each.happens)))
        elif entry.fault in ("preempt", "preempt-without-notice"):
            one = Preemption(entry.at, entry.fault == "preempt", each.happens)
            found = found._replace(preempt=(*found.preempt, *[one] * (entry.times or 1)))
        else:
            found = _with(found, entry)
            each.happens()
    return found


def _with(found: JobFaults, entry: JobEntry) -> JobFaults:
    if entry.fault == "image-missing":
        return found._replace(image_missing=True)
    if entry.fault == "unknown-state":
        return found._replace(unknown_state=entry.state)
    return found._replace(refuse=found.refuse or ("quota" if entry.fault == "quota" else "capacity"))
