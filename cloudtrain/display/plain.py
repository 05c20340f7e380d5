"""Plain lines: for pipes, files and CI, and for ``--json``, where standard output belongs to the report."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any, TextIO

from cloudtrain.display.summary import ending, heading
from cloudtrain.runs.observer import Observer, RunInfo
from cloudtrain.runs.state import State


class PlainDisplay(Observer):
    """``[node/rank] text`` for the wanted ranks; our own words go to standard error."""

    def __init__(self, out: TextIO, ranks: Collection[int] | None, *, quiet: bool = False) -> None:
        self._out = out
        self._ranks = ranks
        self._quiet = quiet

    def begin(self, info: RunInfo) -> None:
        if not self._quiet:
            self.say(heading(info))

    def note(self, text: str) -> None:
        self.say(f"cloudtrain: {text}")

    def state(self, state: State) -> None:
        if state is State.STOPPING and not self._quiet:
            self.say("cloudtrain: STOPPING")

    def line(self, node: int, rank: int | None, text: str) -> None:
        if rank is None:
            self.say(f"[{node}/-] {text}")
        elif not self._quiet and (self._ranks is None or rank in self._ranks):
            self.show(f"[{node}/{rank}] {text}")

    def end(self, report: dict[str, Any]) -> None:
        for line in ending(report):
            self.say(line)

    def show(self, text: str) -> None:
        """A line of the job's output. A reader that went away (`| head`) does not end the training."""
        try:
            self._out.write(text + "\n")
            self._out.flush()
        except BrokenPipeError:
            self._quiet = True

    def say(self, text: str) -> None:
        """A line of ours."""
        try:
            print(text, file=sys.stderr, flush=True)
        except BrokenPipeError:
            pass
