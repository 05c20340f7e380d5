"""What a process prints: kept byte for byte in a file, and shown line by line.

A worker writes to a named pipe; the launcher reads it, so that output survives the worker's sudden end. For showing,
bytes that are no UTF-8 become ``\\xNN``, a progress bar that redraws itself with carriage returns becomes its last
state, and a line without end is shown in pieces.
"""

from __future__ import annotations

import codecs
import io
import os
from typing import Callable

_READ = 1 << 16
MAX_SHOWN = 1 << 16
"""Characters after which an unfinished line is shown as it is."""

ShowLine = Callable[[str], None]


class Lines:
    """Bytes in, shown lines out."""

    def __init__(self, show: ShowLine) -> None:
        self._show = show
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._line = ""

    def feed(self, data: bytes, final: bool = False) -> None:
        """Take more bytes; ``final`` gives out what is left without a newline."""
        # Only what is new is searched: a line of many megabytes in small pieces must not cost its square.
        *whole, self._line = self._pieces(self._decoder.decode(data, final))
        for line in whole:
            self._show_last_state(line)
        if len(self._line) > MAX_SHOWN or (final and self._line):
            self._show_last_state(self._line)
            self._line = ""

    def _pieces(self, text: str) -> list[str]:
        pieces = text.split("\n")
        pieces[0] = self._line + pieces[0]
        if "\r" in pieces[-1]:
            # Only the newest state of a progress bar is worth keeping; the file has them all.
            states = pieces[-1].rstrip("\r")
            pieces[-1] = states.rpartition("\r")[2] + ("" if states == pieces[-1] else "\r")
        return pieces

    def _show_last_state(self, line: str) -> None:
        states = [part for part in line.rstrip("\r").split("\r") if part]
        self._show(states[-1] if states else "")


class Stream:
    """One readable end: a rank's named pipe, or the pipe of the agent's own words."""

    def __init__(self, fd: int, log_path: str, show: ShowLine, complain: ShowLine) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.ended = False
        self._lines = Lines(show)
        self._complain = complain
        self._log_path = log_path
        self._log: io.FileIO | None = None
        try:
            self._log = io.FileIO(log_path, "a")
        except OSError as error:
            complain(f"output is shown but not kept: {error}")

    def fileno(self) -> int:
        """For selectors."""
        return self.fd

    def pump(self) -> bool:
        """Read what is there. False when there was nothing; ``ended`` is set when no writer is left."""
        try:
            data = os.read(self.fd, _READ)
        except BlockingIOError:
            return False
        if not data:
            self.ended = True
            return False
        self._keep(data)
        self._lines.feed(data)
        return True

    def finish(self, limit: int = 64 << 20) -> None:
        """Read what is there now, at most ``limit`` bytes since a stray process may go on writing, and close."""
        for _ in range(limit // _READ):
            if not self.pump():
                break
        self._lines.feed(b"", final=True)
        os.close(self.fd)
        if self._log:
            self._log.close()

    def _keep(self, data: bytes) -> None:
        if self._log is None:
            return
        try:
            view = memoryview(data)
            while view:
                view = view[self._log.write(view) :]
        except OSError as error:
            self._log.close()
            self._log = None
            self._complain(f"output is shown but no longer kept in {self._log_path}: {error}")
