"""What the nodes of one start print, line by line in CloudWatch Logs: a stream for each node.

Neither the group nor a stream is there before its first line. Lines carry the time at which they were seen here.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cloudtrain.providers.sagemaker.logs import GROUP

_READ_BYTES = 4 << 20
"""Of one file at a time, so that a flood of lines holds up nothing else."""
_MOST_EVENTS = 10_000
_MOST_BYTES = 1 << 20
_EVENT_BYTES = 26
"""Limits of one PutLogEvents; every event counts for its bytes and these (AWS's reference of the call)."""
_LONGEST = 65_000
"""Characters of an event: at four bytes each below the 256 KiB that were AWS's limit for long."""


class _Event(NamedTuple):
    """A line, and when it was seen, in milliseconds since the epoch."""

    time: int
    text: str
    size: int
    due: float
    """On the monotonic clock: when it may be sent."""


class LogStreams:
    """The streams of one start of a job."""

    def __init__(self, logs: Any, names: Sequence[str], files: Sequence[Path], delays: Sequence[float]) -> None:
        """``names`` of the streams, ``files`` that the nodes write to, ``delays`` in seconds, each one per node."""
        self._logs = logs
        self._streams = [_Stream(*each) for each in zip(names, files, delays, strict=True)]
        self._made: set[str] = set()

    def pump(self) -> bool:
        """Send what is there and due. Whether there may be more at once."""
        more = False
        for stream in self._streams:
            more |= stream.read()
            self._send(stream)
        return more

    def drain(self) -> None:
        """The nodes have ended: take in all that is left of their files, and send what is due."""
        while self.pump():
            pass
        for stream in self._streams:
            stream.end()
            self._send(stream)

    def finish(self, ended: threading.Event) -> None:
        """Send what was not due; ``ended``: leave it."""
        for stream in self._streams:
            while stream.waiting and not ended.wait(stream.waiting[0].due - time.monotonic()):
                self._send(stream)

    def _send(self, stream: _Stream) -> None:
        for batch in stream.batches():
            self._make(stream.name)
            self._logs.put_log_events(
                logGroupName=GROUP,
                logStreamName=stream.name,
                logEvents=[{"timestamp": event.time, "message": event.text} for event in batch],
            )

    def _make(self, name: str) -> None:
        if name in self._made:
            return
        try:
            self._logs.create_log_group(logGroupName=GROUP)
        except self._logs.exceptions.ResourceAlreadyExistsException:
            pass
        self._logs.create_log_stream(logGroupName=GROUP, logStreamName=name)
        self._made.add(name)


class _Stream:
    """One node's file, and the lines of it that have not been sent."""

    def __init__(self, name: str, file: Path, delay: float) -> None:
        self.name = name
        self.waiting: deque[_Event] = deque()
        self._file = file
        self._delay = delay
        self._offset = 0
        self._rest = b""
        """Of a line whose end is still to come."""

    def read(self) -> bool:
        """Take in what is new; whether there may be more."""
        try:
            with self._file.open("rb") as file:
                file.seek(self._offset)
                data = file.read(_READ_BYTES)
        except OSError:  # nothing has been started yet
            return False
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._take(lines)
        return len(data) == _READ_BYTES

    def end(self) -> None:
        """What has no newline at its end is a line, too."""
        self._take([self._rest])
        self._rest = b""

    def batches(self) -> Iterator[list[_Event]]:
        """The lines that are due, in portions for one call each."""
        batch: list[_Event] = []
        size = 0
        now = time.monotonic()
        while self.waiting and self.waiting[0].due <= now:
            event = self.waiting.popleft()
            if len(batch) == _MOST_EVENTS or (batch and size + event.size > _MOST_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(event)
            size += event.size
        if batch:
            yield batch

    def _take(self, lines: list[bytes]) -> None:
        """An event must not be empty, and has a longest size; a longer line becomes several."""
        seen, due = time.time_ns() // 1_000_000, time.monotonic() + self._delay
        for line in lines:
            text = line.decode("utf-8", "replace")
            for start in range(0, len(text), _LONGEST):
                piece = text[start : start + _LONGEST]
                self.waiting.append(_Event(seen, piece, len(piece.encode()) + _EVENT_BYTES, due))
