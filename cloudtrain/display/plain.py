"""Plain lines: for pipes, files and CI, and for ``--json``, where standard output belongs to the report."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Collection
from typing import Any, TextIO

from cloudtrain.display.summary import ending, heading, unknown_ranks
from cloudtrain.record.observer import Observer, RunInfo
from cloudtrain.record.state import State

_PIECE = 1024
"""Characters, at most 4096 bytes: what a pipe that `select` calls writable takes without blocking (PIPE_BUF)."""
_TRY_SECONDS = 0.2
_HURRIED_SECONDS = 1.0


class PlainDisplay(Observer):
    """``[node/rank] text`` for the wanted ranks; our own words go to standard error."""

    def __init__(self, out: TextIO | None, ranks: Collection[int] | None, *, quiet: bool = False) -> None:
        self._out = out
        self._ranks = ranks
        self._quiet = quiet
        self._notes = not quiet
        self._hurried = False
        self._told = {State.STOPPING}
        self._launchers = True

    def begin(self, info: RunInfo) -> None:
        if info.provider != "local":  # there minutes lie between two states, and platforms and launchers say a lot
            self._told |= {state for state in State if not state.is_final}
            self._launchers = not self._quiet
        if not self._quiet:
            self.say(heading(info))
        for warning in unknown_ranks(info, self._ranks):
            self.note(warning)

    def note(self, text: str) -> None:
        if self._notes:
            self.say(f"cloudtrain: {text}")

    def state(self, state: State) -> None:
        if state in self._told and not self._quiet:
            self.say(f"cloudtrain: {state}")

    def line(self, node: int, rank: int | None, text: str) -> None:
        if rank is None and self._launchers:
            self.say(f"[{node}/-] {text}")
        elif rank is not None and not self._quiet and (self._ranks is None or rank in self._ranks):
            self.show(f"[{node}/{rank}] {text}")

    def end(self, report: dict[str, Any]) -> None:
        for line in ending(report):
            self.say(line)

    def hurry(self) -> None:
        self._hurried = True

    def show(self, text: str) -> None:
        """A line of the job's output. A reader that went away (`| head`), or a full disk, does not end the training."""
        if self._out is not None and not self._write(self._out, text):
            self._quiet = True

    def say(self, text: str) -> None:
        """A line of ours."""
        if sys.stderr is not None:
            self._write(sys.stderr, text)

    def _write(self, stream: TextIO, text: str) -> bool:
        """Write a line, waiting for the reader unless the run is to be stopped. False once nobody takes it any more."""
        line = text + "\n"
        try:
            for start in range(0, len(line), _PIECE):
                if not self._wait_for_reader(stream):
                    return False
                stream.write(line[start : start + _PIECE])
                stream.flush()
        except OSError:
            _put_to_rest(stream)
            return False
        return True

    def _wait_for_reader(self, stream: TextIO) -> bool:
        """True once the stream takes a piece. A write that blocks would keep the run from being stopped."""
        try:
            fd = stream.fileno()
        except (OSError, ValueError):  # no file: a notebook's, a test's
            return True
        tries = 0
        while not select.select([], [fd], [], _TRY_SECONDS)[1]:
            tries += self._hurried
            if tries * _TRY_SECONDS > _HURRIED_SECONDS:
                return False
        return True


def _put_to_rest(stream: TextIO) -> None:
    """What is still in the stream's buffer must not fail once more when the interpreter ends."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
