"""The lines of a job, from Cloud Logging.

An entry is of ``resource.type="ml_job"`` and has the job's number in ``resource.labels.job_id`` and the replica in
``resource.labels.task_name``: ``workerpool1-3``, or ``service`` for what the platform says. The text is
``jsonPayload.message``, or else ``textPayload``. (As gcloud's ``ai custom-jobs stream-logs`` reads them.)

The service lets a project read 60 times a minute: pages are as large as it allows, 1000 entries.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from cloudtrain.errors import RefusedError, UnreachableError
from cloudtrain.providers.loglines import parse
from cloudtrain.providers.paging import Tokens
from cloudtrain.providers.port import Cursor, LogLine, LogPage
from cloudtrain.providers.reading import at, entries, text
from cloudtrain.providers.vertex.calls import retry
from cloudtrain.providers.vertex.endpoints import Endpoints
from cloudtrain.providers.vertex.errors import Told
from cloudtrain.providers.vertex.position import SECOND, Key, Position, key_of

_PAGE = 1000
_MOST_LINES = 5000
"""Entries of one reading, and those of a page more."""
_TIMEOUT = (10.0, 60.0)
"""To connect, and to hear something; seconds."""
_PATIENCE_SECONDS = 150.0
"""No new try after that: longer than the minute that the service counts calls in."""
_LAST_SECONDS = 60.0
"""How long before the end of a job the service may have written why it failed."""
_TIME = re.compile(r"([0-9T:-]{19})(?:\.([0-9]{1,9}))?Z")
_TASK = re.compile(r"workerpool([0-9]{1,3})-([0-9]{1,6})")


class Subject(NamedTuple):
    """The job whose lines are wanted."""

    number: str
    """The last part of its resource name."""
    created: int
    """Nanoseconds since the epoch. Each query says it: without a time Google's client asks for the last day alone."""
    pools: tuple[int, ...]
    """Replicas of each pool."""
    is_over: bool


class Entry(NamedTuple):
    """One entry, which may hold several lines."""

    key: Key
    content: Mapping[str, Any]
    """The LogEntry as JSON."""


class Logs:
    """Cloud Logging of one project."""

    def __init__(
        self, endpoints: Endpoints, project: str, order_seconds: float, clock: Callable[[], float] = time.time
    ) -> None:
        """``order_seconds``: how long an entry waits for those before it. ``clock``: seconds since the epoch."""
        self._endpoints = endpoints
        self._project = project
        self._order = order_seconds
        self._clock = clock

    def page(self, subject: Subject, cursor: Cursor) -> LogPage:
        """The next lines."""
        now = self._clock()
        position = Position.of(cursor)
        if position is None:
            newest, over = self._newest(subject), subject.is_over
            position = Position.begun(subject.created, newest, order=self._order, is_over=over, now=now)
        elif position.at is None:
            if position.waits(self._order, now):
                return LogPage((), cursor, caught_up=True)
            position.release(self._newest(subject), self._order, now)
        found = self._new_entries(subject, position)
        lines = [line for entry in found for line in _lines(entry, subject.pools)]
        return LogPage(tuple(lines), position.as_cursor(), caught_up=position.at is None)

    def last_words(self, number: str, ended: float) -> str:
        """What the service has written to the log of a job that has failed: the error that the job shows later.
        "" if nothing of that kind can be read now. ``ended``: seconds since the epoch."""
        chosen = [
            'resource.labels.task_name="service"',
            "severity>=ERROR",
            _compared("timestamp>=", int((ended - _LAST_SECONDS) * SECOND)),
        ]
        try:
            answer = self._answer(self._asked(number, chosen, "timestamp desc", 1), patience=0.0)
        except (RefusedError, UnreachableError):  # the job itself will say it
            return ""
        return next((_text(found) for found in entries(answer, "entries") if isinstance(found, dict)), "")

    def _new_entries(self, subject: Subject, position: Position) -> list[Entry]:
        """Those that may be given out and have not been, in the order of their times."""
        new: list[Entry] = []
        last = first = subject.created if position.at is None else position.at
        asked = [_compared("timestamp>=", first), _compared("timestamp<=", position.released)]
        if first <= position.told:
            late, more = _compared("receiveTimestamp>=", position.floor), _compared("timestamp>", position.told)
            asked.append(f"({late} OR {more})")
        for page in self._pages(subject, asked):
            if len(new) >= _MOST_LINES:
                position.paused(last)
                break
            for entry in page:
                last = max(last, entry.key.time)
                if position.takes(entry.key):
                    new.append(entry)
        else:
            position.done()
        return sorted(new, key=lambda entry: entry.key.time)

    def _newest(self, subject: Subject) -> Key | None:
        """The newest entry."""
        for page in self._pages(subject, [_compared("timestamp>=", subject.created)], order="timestamp desc", size=1):
            if page:
                return page[0].key
        return None

    def _pages(
        self, subject: Subject, chosen: Sequence[str], order: str = "timestamp asc", size: int = _PAGE
    ) -> Iterator[list[Entry]]:
        """All entries of the job that have been ``chosen``. A page may be empty, and others follow."""
        asked = self._asked(subject.number, chosen, order, size)
        tokens, token = Tokens(f"read the log of job {subject.number}"), ""
        while True:
            answer = self._answer({**asked, "pageToken": token} if token else asked)
            yield [entry for item in entries(answer, "entries") if (entry := _entry(item))]
            token = tokens.next(text(answer, "nextPageToken"))
            if not token:
                return

    def _asked(self, number: str, chosen: Sequence[str], order: str, size: int) -> dict[str, Any]:
        return {
            "resourceNames": [f"projects/{self._project}"],
            "filter": " AND ".join(['resource.type="ml_job"', f'resource.labels.job_id="{number}"', *chosen]),
            "orderBy": order,
            "pageSize": size,
        }

    def _answer(self, asked: Mapping[str, Any], patience: float = _PATIENCE_SECONDS) -> Any:
        with Told("Cloud Logging"):
            call = self._client.logging_api.api_request
            again = retry(patience)
            return again(call)(method="POST", path="/entries:list", data=asked, timeout=_TIMEOUT)

    @cached_property
    def _client(self) -> Any:
        return self._endpoints.log_service()


def _entry(item: Any) -> Entry | None:
    """None for what is no entry. There are many: of most that come again only the key is looked at."""
    if not isinstance(item, dict):
        return None
    moment = nanoseconds(item.get("timestamp"))
    if moment is None:
        return None
    received = nanoseconds(item.get("receiveTimestamp"))
    key = key_of(moment, moment if received is None else received, item.get("logName"), item.get("insertId"))
    return Entry(key, item)


def _lines(entry: Entry, pools: Sequence[int]) -> Iterator[LogLine]:
    moment = entry.key.time / SECOND
    node = _node(text(entry.content, "resource", "labels", "task_name"), pools)
    for line in _text(entry.content).removesuffix("\n").split("\n"):
        yield LogLine(0, None, line, moment) if node is None else parse(line, node, moment)


def _node(task: str, pools: Sequence[int]) -> int | None:
    """Replicas are counted through the pools, as launch.py counts them; None for the platform."""
    found = _TASK.fullmatch(task)
    return sum(pools[: int(found.group(1))]) + int(found.group(2)) if found else None


def _text(item: Mapping[str, Any]) -> str:
    payload = at(item, "jsonPayload")
    if not isinstance(payload, dict):
        return text(item, "textPayload")
    message = payload.get("message")
    return message if isinstance(message, str) else json.dumps(payload, ensure_ascii=False)


def nanoseconds(moment: object) -> int | None:
    """A time as Google's services write it, since the epoch; None for anything else."""
    found = _TIME.fullmatch(moment) if isinstance(moment, str) else None
    if found is None:
        return None
    seconds = _seconds(found.group(1))
    return None if seconds is None else seconds * SECOND + int((found.group(2) or "").ljust(9, "0"))


@lru_cache(maxsize=256)
def _seconds(moment: str) -> int | None:
    try:
        return int(datetime.fromisoformat(f"{moment}+00:00").timestamp())
    except ValueError:
        return None


def _compared(field: str, moment: int) -> str:
    """A comparison of the filter: ``timestamp>="2026-11-30T10:00:00.000000000Z"``."""
    seconds, rest = divmod(moment, SECOND)
    return f'{field}"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"'
