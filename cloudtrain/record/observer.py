"""Who is told about a run while it goes on: a terminal, a log, a test."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloudtrain.record.state import State


@dataclass(frozen=True)
class RunInfo:
    """What is known of a run when it starts."""

    run_id: str
    folder: Path | None
    """Of a local run."""
    nodes: int
    processes: int
    """Processes per node."""
    engine: str = ""
    """How a local run starts its nodes."""
    device: str = ""
    provider: str = "local"

    @property
    def ranks(self) -> int:
        """Processes in all."""
        return self.nodes * self.processes


class Observer:
    """Hears everything and does nothing; subclasses show what they like. Called from one thread."""

    def begin(self, info: RunInfo) -> None:
        """The request has been handed over."""

    def note(self, text: str) -> None:
        """Something the user should know: what does not apply here, what is being waited for."""

    def state(self, state: State) -> None:
        """The run has entered a state."""

    def line(self, node: int, rank: int | None, text: str) -> None:
        """A line a rank printed, or, without a rank, one of the node's launcher."""

    def metric(self, record: dict[str, Any]) -> None:
        """A record that a rank logged."""

    def tick(self) -> None:
        """Called a few times a second."""

    def hurry(self) -> None:
        """The run is to be stopped: wait no longer for whoever reads this. May be called from a signal handler."""

    def close(self) -> None:
        """Called last, also after an error: give back what was taken of the terminal."""

    def end(self, report: dict[str, Any]) -> None:
        """The run is over; the end report, as in report.json."""
