"""Cloud Logging, as far as the lines of jobs go: entries, and ``entries:list``.

An entry's place is its timestamp and then its insertId, which only grows: so lines of one moment keep their order, and
"everything behind (timestamp, insertId)" is a place to read on from. Entries may be received late, and can be read from
then on: see ``_delay``.
"""

from __future__ import annotations

import base64
import binascii
import bisect
import itertools
import json
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, NamedTuple

from cloudtrain.emulator.vertex import filters
from cloudtrain.emulator.vertex.errors import ServiceError

MOST_ENTRIES = 1000
"""Of one page."""
_DEFAULT_ENTRIES = 50
_LATE_SECONDS = 1.5
_OVERTAKEN_SECONDS = 0.6
_JOB = ("resource", "labels", "job_id")
_TIME = ("timestamp",)

Place = tuple[int, str]
"""Timestamp (nanoseconds) and insertId."""


class Entry(NamedTuple):
    """One entry."""

    place: Place
    received: int
    """When it can be read for the first time: nanoseconds since the epoch."""
    content: Mapping[str, Any]
    """The LogEntry as JSON."""

    def lookup(self, path: tuple[str, ...]) -> Any:
        """The value at a path, for filters."""
        found: Any = self.content
        for step in path:
            found = found.get(step) if isinstance(found, Mapping) else None
        return found


class Page(NamedTuple):
    """What one call answers."""

    entries: list[Mapping[str, Any]]
    next_token: str


class EntryLog:
    """All entries of all jobs. For any thread."""

    def __init__(self, faults: Collection[str], clock: Callable[[], int] = time.time_ns) -> None:
        """``faults``: ``late``, ``out-of-order``, ``empty-pages``. ``clock``: nanoseconds since the epoch."""
        self._faults = faults
        self._clock = clock
        self._lock = threading.Lock()
        self._by_job: dict[str, list[Entry]] = {}
        self._count = 0
        self._latest = 0

    def append(
        self,
        project: str,
        job: str,
        task: str,
        payload: Mapping[str, Any],
        severity: str = "INFO",
        *,
        late: bool = True,
    ) -> None:
        """One line of ``task`` (``service``, ``workerpool0-0``). ``payload`` is jsonPayload or textPayload in one."""
        with self._lock:
            self._count += 1
            self._latest = moment = max(self._clock(), self._latest)
            received = moment + (round(self._delay() * 1e9) if late else 0)
            number = f"{self._count:016x}"
            content = {
                "logName": f"projects/{project}/logs/{task}",
                "resource": {
                    "type": "ml_job",
                    "labels": {"job_id": job, "project_id": project, "task_name": task},
                },
                "timestamp": rfc3339(moment),
                "receiveTimestamp": rfc3339(received),
                "severity": severity,
                "insertId": number,
                "labels": {"ml.googleapis.com/job_id": job},
                **payload,
            }
            self._by_job.setdefault(job, []).append(Entry((moment, number), received, content))

    def list(self, projects: Collection[str], filter_: str, order: str = "", size: int = 0, token: str = "") -> Page:
        """``entries:list``. Raises ServiceError."""
        if order not in ("", "timestamp", "timestamp asc", "timestamp desc"):
            raise ServiceError("INVALID_ARGUMENT", f"order_by: {order!r} is none of 'timestamp asc', 'timestamp desc'")
        if size < 0 or size > MOST_ENTRIES:
            raise ServiceError("INVALID_ARGUMENT", f"page_size must be 1 to {MOST_ENTRIES}, not {size}")
        place, was_empty = _read_token(token)
        if "empty-pages" in self._faults and not was_empty:
            return Page([], _token(place, was_empty=True))
        wanted = filters.parse(filter_)
        newest_first = order.endswith("desc")
        matching = (
            entry
            for entry in self._candidates(wanted, place, newest_first)
            if entry.content["resource"]["labels"]["project_id"] in projects and wanted.matches(entry.lookup)
        )
        size = size or _DEFAULT_ENTRIES
        found = list(itertools.islice(matching, size + 1))
        page = found[:size]
        more = _token(page[-1].place, was_empty=False) if len(found) > size else ""
        return Page([entry.content for entry in page], more)

    def _candidates(self, wanted: filters.Filter, place: Place | None, newest_first: bool) -> Sequence[Entry]:
        """Those that can be read now, in order, beginning behind ``place``; at least all that match."""
        job, earliest = wanted.pinned(_JOB), wanted.earliest(_TIME)
        with self._lock:
            kept = [self._by_job.get(job, [])] if job else list(self._by_job.values())
            kept = [entries[_first(entries, earliest or 0) :] for entries in kept]
        now = self._clock()
        found = sorted(
            (entry for entries in kept for entry in entries if entry.received <= now),
            key=lambda entry: entry.place,
            reverse=newest_first,
        )
        if place is None:
            return found
        return [entry for entry in found if (entry.place < place if newest_first else entry.place > place)]

    def _delay(self) -> float:
        """Seconds until an entry can be read: none, or long enough for a client to have read what was written later."""
        if "late" in self._faults:
            return _LATE_SECONDS
        return _OVERTAKEN_SECONDS if "out-of-order" in self._faults and self._count % 2 else 0.0


def text_payload(line: str) -> dict[str, Any]:
    """What becomes of a line of output: a single JSON object is taken for the payload, with its ``severity`` honoured;
    all else is its ``message``."""
    if line.startswith("{"):
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if isinstance(found, dict):
            severity = found.pop("severity", None)
            known = {"severity": severity} if severity in filters.SEVERITIES else {}
            return {"jsonPayload": found, **known}
    return {"jsonPayload": {"message": line}}


def rfc3339(moment: int) -> str:
    """Nanoseconds since the epoch as Google writes them."""
    whole, fraction = divmod(moment, 1_000_000_000)
    return f"{datetime.fromtimestamp(whole, timezone.utc):%Y-%m-%dT%H:%M:%S}.{fraction:09d}Z"


def _first(entries: Sequence[Entry], moment: int) -> int:
    return bisect.bisect_left(entries, (moment, ""), key=lambda entry: entry.place)


def _token(place: Place | None, *, was_empty: bool) -> str:
    return base64.urlsafe_b64encode(json.dumps([place, was_empty]).encode()).decode()


def _read_token(token: str) -> tuple[Place | None, bool]:
    if not token:
        return None, False
    try:
        place, was_empty = json.loads(base64.urlsafe_b64decode(token))
        return (place and (int(place[0]), str(place[1]))), bool(was_empty)
    except (ValueError, TypeError, IndexError, binascii.Error) as error:
        raise ServiceError("INVALID_ARGUMENT", "page_token is none of ours") from error
