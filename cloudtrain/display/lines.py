"""The lines of a run and nothing else: ``[node/rank] text``, the same for every provider."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import TextIO

from cloudtrain.record.observer import Observer


class LinesDisplay(Observer):
    """Lines go to a stream; what is to be said about the run goes to standard error.

    A reader that goes away (``| head``) ends the command: nothing else is wanted of it. Writing raises BrokenPipeError
    then, and other OSErrors as they come.
    """

    def __init__(self, out: TextIO, ranks: Collection[int] | None = None, nodes: Collection[int] | None = None) -> None:
        """``ranks``, ``nodes``: those to show; None: all, and with all ranks the launchers' own words, too."""
        self._out = out
        self._ranks = ranks
        self._nodes = nodes

    def wants(self, node: int, rank: int | None) -> bool:
        """Whether lines of this rank are shown."""
        return (self._nodes is None or node in self._nodes) and (self._ranks is None or rank in self._ranks)

    def line(self, node: int, rank: int | None, text: str) -> None:
        if self.wants(node, rank):
            self._out.write(f"[{node}/{'-' if rank is None else rank}] {text}\n")

    def tick(self) -> None:
        self._out.flush()

    def close(self) -> None:
        self._out.flush()

    def note(self, text: str) -> None:
        self._out.flush()  # in their order, where both end on one terminal
        print(f"cloudtrain: {text}", file=sys.stderr, flush=True)
