"""A job's log files: blobs that grow while its nodes write, and the URLs by which anyone may read them.

``user_logs/std_log.txt`` of a single node, ``user_logs/std_log_process_00.txt`` and so on of several: with one process
per node a process is a node. Those of a later start of the same job lie in ``user_logs/retry_001/`` and so on: public
tools for one kind of Azure ML's compute read them there. Beside them lies what the platform writes.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection
from pathlib import Path

from cloudtrain.emulator.azureml.blobs import Blobs, Place
from cloudtrain.emulator.azureml.jobs import Job, stamp
from cloudtrain.emulator.base import Clock

_PLATFORM = "system_logs/lifecycler/lifecycler.log"
_LATE_SECONDS = 20.0
"""Of the service's time: how much later lines come up with the fault ``late``."""
_SETTLE_SECONDS = 8.0
"""Of the service's time: how much later than the job's end the last of them come."""
_TURNS = 3


def log_name(node: int, nodes: int, start: int) -> str:
    """The file of a node in a start of the job, counted from 0."""
    folder = f"user_logs/retry_{start:03}" if start else "user_logs"
    if nodes == 1:
        return f"{folder}/std_log.txt"
    return f"{folder}/std_log_process_{node:0{max(2, len(str(nodes - 1)))}}.txt"


class LogFiles:
    """Those of one job. For its life's thread alone."""

    def __init__(self, job: Job, blobs: Blobs, place: Place, clock: Clock, odd: Collection[str]) -> None:
        """``place``: where the job's artefacts are. ``odd``: what is to go wrong, in the words of the fault file."""
        self._job = job
        self._blobs = blobs
        self._place = place
        self._clock = clock
        self._odd = odd
        self._sources: dict[str, _Source] = {}
        self._turn = 0
        self._begin(_PLATFORM)

    def note(self, text: str) -> None:
        """A line of the platform's."""
        self._append(_PLATFORM, f"{stamp(time.time())} {text}\n".encode())

    def follow(self, name: str, file: Path) -> None:
        """From now on the log ``name`` is what ``file`` gets."""
        self._begin(name)
        self._sources[name] = _Source(file)

    def pump(self, *, everything: bool = False) -> None:
        """Send what the nodes have written since, or with a fault a part of it."""
        self._turn += 1
        for number, name in enumerate(reversed(self._sources)):
            if everything or self._is_turn_of(number):
                self._send(name, everything=everything)

    def end(self) -> None:
        """What the nodes have left; with the fault ``late`` it is for ``settle`` to send it."""
        self.pump(everything="late" not in self._odd)

    def settle(self) -> None:
        """After the job's end: what came late."""
        if "late" in self._odd:
            time.sleep(self._clock.scaled(_SETTLE_SECONDS))
            self.pump(everything=True)

    def tail(self, name: str, most: int) -> str:
        """The end of what a node has written."""
        return self._sources[name].tail(most) if name in self._sources else ""

    def _is_turn_of(self, number: int) -> bool:
        if "empty-pages" in self._odd:
            return self._turn % _TURNS == 0
        return "out-of-order" not in self._odd or (self._turn + number) % _TURNS == 0

    def _begin(self, name: str) -> None:
        place = self._at(name)
        self._blobs.begin(place)
        self._job.log_files = {**self._job.log_files, name: self._blobs.signed(place, "r")}

    def _send(self, name: str, *, everything: bool) -> None:
        source = self._sources[name]
        source.read()
        patience = 0.0 if everything or "late" not in self._odd else self._clock.scaled(_LATE_SECONDS)
        self._append(name, source.older_than(patience))

    def _append(self, name: str, content: bytes) -> None:
        if content:
            self._blobs.append(self._at(name), content)

    def _at(self, name: str) -> Place:
        return self._place._replace(path=self._place.blob(name))


class _Source:
    """The file that a node writes to."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0
        self._waiting: deque[tuple[float, bytes]] = deque()

    def read(self) -> None:
        try:
            with self._file.open("rb") as content:
                content.seek(self._offset)
                new = content.read()
        except FileNotFoundError:
            return
        self._offset += len(new)
        if new:
            self._waiting.append((time.monotonic(), new))

    def older_than(self, seconds: float) -> bytes:
        until, found = time.monotonic() - seconds, []
        while self._waiting and self._waiting[0][0] <= until:
            found.append(self._waiting.popleft()[1])
        return b"".join(found)

    def tail(self, most: int) -> str:
        try:
            return self._file.read_bytes()[-most:].decode(errors="replace")
        except FileNotFoundError:
            return ""
