"""CloudWatch: the lines of a job's nodes, each once, those of a node in the order they were printed.

All jobs of an account share one group, which is not there before the first of them has printed a line. Every start of
a container has a stream of its own, ``<job>/algo-<n>-<seconds since the epoch>``, which may appear late. A stream is
read by tokens: a page may be empty with more behind it, and only a token that stays the same is the end. Tokens live
for a day, so the cursor also keeps the time of the last line, and how many there were of the same millisecond.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from cloudtrain.providers.loglines import parse
from cloudtrain.providers.paging import Tokens
from cloudtrain.providers.port import Cursor, LogLine, LogPage
from cloudtrain.providers.reading import entries, section, text, whole
from cloudtrain.providers.sagemaker.errors import called
from cloudtrain.providers.sagemaker.refusals import BadParameter, NotThere

GROUP = "/aws/sagemaker/TrainingJobs"
_STREAM = r"algo-(?P<number>[0-9]{1,6})(-(?P<start>[0-9]{1,15}))?.*"
_LAST = 10**15
_ENOUGH = 10_000
"""Lines of one node in a page: as many as one answer of the service has at most."""
_MOST_CALLS = 100
"""For one node in a page: there may be many empty answers before the next line."""


class Stream(NamedTuple):
    """One start of one node's container."""

    node: int
    start: int
    name: str


class Place(NamedTuple):
    """How far a stream has been read."""

    token: str = ""
    time: int = 0
    """Of the last event, in milliseconds since the epoch."""
    seen: int = 0
    """Events of that time."""
    since: int = 0
    """The time that the token's reading began with; it goes with the token."""


class LogReader:
    """Reads the log of one job."""

    def __init__(self, logs: Any, region: str, job: str) -> None:
        self._logs = logs
        self._region = region
        self._job = job

    def page(self, cursor: Cursor) -> LogPage:
        """The next lines of all nodes, merged by time."""
        places = {name: _place(place) for name, place in section(cursor, "streams").items()}
        by_node, caught_up = [], True
        for _, streams in groupby(self._streams(), key=lambda stream: stream.node):
            lines: list[LogLine] = []
            for stream in streams:
                found, places[stream.name], ended = self._read(stream, places.get(stream.name, Place()))
                lines += found
                if not ended:  # what a later start has printed comes later
                    caught_up = False
                    break
            by_node.append(lines)
        merged = tuple(heapq.merge(*by_node, key=lambda line: line.time or 0.0))
        return LogPage(merged, {"streams": {name: list(place) for name, place in places.items()}}, caught_up)

    def _streams(self) -> list[Stream]:
        """All that are there now: by node, the first start first."""
        try:
            return sorted(self._listed())
        except NotThere:
            return []

    def _listed(self) -> Iterator[Stream]:
        # With the slash: the names of other jobs may begin with this one's.
        asked = {"logGroupName": GROUP, "logStreamNamePrefix": f"{self._job}/"}
        tokens, token = Tokens(f"list the log streams of {self._job}"), ""
        while True:
            answer = called(
                self._logs.describe_log_streams,
                f"list the log streams of {self._job}",
                self._region,
                "logStreams",
                **asked,
                **({"nextToken": token} if token else {}),
            )
            for found in entries(answer, "logStreams"):
                yield _stream(text(found, "logStreamName").removeprefix(f"{self._job}/"))
            last, token = token, text(answer, "nextToken")
            if token in ("", last):
                return
            tokens.next(token)

    def _read(self, stream: Stream, place: Place) -> tuple[list[LogLine], Place, bool]:
        """The lines behind ``place``, where they end, and whether nothing more is there now."""
        events: list[_Event] = []
        skip = 0
        for _ in range(_MOST_CALLS):
            if len(events) >= _ENOUGH:
                break
            try:
                answer = self._get(stream, place)
            except NotThere:  # removed meanwhile
                return _lines(stream, events), place, True
            except BadParameter:
                if not place.token:
                    raise
                place, skip = place._replace(token="", since=place.time), place.seen
                continue
            found, skip = _behind(_events(answer), place.time, skip)
            token = text(answer, "nextForwardToken")
            ended = token in ("", place.token)
            events += found
            place = _after(found, place)._replace(token=token or place.token)
            if ended:
                return _lines(stream, events), place, True
        return _lines(stream, events), place, False

    def _get(self, stream: Stream, place: Place) -> Mapping[str, Any]:
        name = f"{self._job}/{stream.name}"
        answer: Mapping[str, Any] = called(
            self._logs.get_log_events,
            f"read the log stream {name}",
            self._region,
            "nextForwardToken",
            logGroupName=GROUP,
            logStreamName=name,
            startFromHead=True,
            **({"startTime": place.since} if place.since else {}),
            **({"nextToken": place.token} if place.token else {}),
        )
        return answer


_Event = tuple[int, str]
"""Milliseconds since the epoch, and the message."""


def _stream(name: str) -> Stream:
    """Nodes are counted from 0, the service's hosts from 1. What has another name is the platform's."""
    found = re.fullmatch(_STREAM, name, re.DOTALL)
    if found is None:
        return Stream(0, _LAST, name)
    return Stream(max(int(found["number"]) - 1, 0), int(found["start"] or 0), name)


def _place(kept: Any) -> Place:
    """As a cursor holds it: from the same client, though perhaps an older one."""
    if not isinstance(kept, (list, tuple)) or len(kept) != len(Place._fields):
        return Place()
    token, *numbers = kept
    return Place(str(token), *map(int, numbers))


def _events(answer: Mapping[str, Any]) -> list[_Event]:
    return [(whole(found, "timestamp") or 0, text(found, "message")) for found in entries(answer, "events")]


def _behind(events: list[_Event], time: int, skip: int) -> tuple[list[_Event], int]:
    """Without the first ``skip`` events of that time, which had been read before the token expired."""
    known = sum(1 for at, _ in events[:skip] if at == time)
    return events[known:], skip - known if known == len(events) else 0


def _after(events: list[_Event], place: Place) -> Place:
    """The place behind these events."""
    time = max((at for at, _ in events), default=-1)
    if time < place.time:
        return place
    seen = sum(1 for at, _ in events if at == time)
    return place._replace(time=time, seen=seen + (place.seen if time == place.time else 0))


def _lines(stream: Stream, events: list[_Event]) -> list[LogLine]:
    """In the order of their times, which is that of printing; events of the same time stay as they came."""
    events.sort(key=itemgetter(0))
    return [
        parse(line, stream.node, at / 1000) for at, message in events for line in message.removesuffix("\n").split("\n")
    ]
