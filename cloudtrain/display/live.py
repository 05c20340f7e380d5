"""The live view on a terminal: the job's lines scroll above a small table of states, steps, speed and losses."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cloudtrain.display.summary import ending, heading, unknown_ranks
from cloudtrain.record.metrics import number
from cloudtrain.record.observer import Observer, RunInfo
from cloudtrain.record.state import State

_SHOWN_RANKS = 16
_REFRESH_PER_SECOND = 8


class _Terminal(Console):
    def on_broken_pipe(self) -> None:
        """Rich would end this process, and the training with it."""
        self.quiet = True


class LiveDisplay(Observer):
    """Lines of the wanted ranks, and below them the state of the run."""

    def __init__(self, ranks: Collection[int] | None, console: Console | None = None) -> None:
        self._ranks = ranks
        self._console = console or _Terminal(highlight=False)
        self._state = State.PENDING
        self._since = time.monotonic()
        self._last: dict[int, dict[str, Any]] = {}
        self._progress: dict[str, float] = {}
        self._heading = ""
        self._live = Live(
            console=self._console, refresh_per_second=_REFRESH_PER_SECOND, transient=True, get_renderable=self._table
        )

    def begin(self, info: RunInfo) -> None:
        self._heading = heading(info)
        self._console.print(Text(self._heading, style="bold"))
        for warning in unknown_ranks(info, self._ranks):
            self.note(warning)
        self._live.start()

    def note(self, text: str) -> None:
        self._console.print(Text(f"cloudtrain: {text}", style="yellow"))

    def state(self, state: State) -> None:
        self._state = state

    def line(self, node: int, rank: int | None, text: str) -> None:
        if rank is None or self._ranks is None or rank in self._ranks:
            prefix = Text(f"[{node}/{'-' if rank is None else rank}] ", style="cyan")
            self._console.print(prefix + Text.from_ansi(text), soft_wrap=True)

    def metric(self, record: dict[str, Any]) -> None:
        rank = record.get("rank")
        if isinstance(rank, int):
            self._last.setdefault(rank, {}).update(record)
        for name in ("step", "total_steps", "samples_per_second", "epoch"):
            value = number(record.get(name))
            if value is not None:
                self._progress[name] = value

    def end(self, report: dict[str, Any]) -> None:
        self._live.stop()
        for line in ending(report):
            self._console.print(Text(line), soft_wrap=True)

    def close(self) -> None:
        self._live.stop()

    def _table(self) -> Group:
        table = Table.grid(padding=(0, 2))
        table.add_row(Text(str(self._state), style="bold"), f"{time.monotonic() - self._since:.0f} s", *self._figures())
        losses = {rank: number(last.get("loss")) for rank, last in sorted(self._last.items())}
        shown = [f"[{rank}] {loss:.4f}" for rank, loss in losses.items() if loss is not None][:_SHOWN_RANKS]
        parts: list[Any] = [table]
        if shown:
            parts.append(Text("loss per rank  " + "  ".join(shown), style="dim"))
        return Group(*parts)

    def _figures(self) -> list[str]:
        step, total = self._progress.get("step"), self._progress.get("total_steps")
        speed = self._progress.get("samples_per_second")
        figures = []
        if step is not None:
            figures.append(f"step {step:.0f}" + (f" of {total:.0f}" if total else ""))
        if speed is not None:
            figures.append(f"{speed:.0f} samples/s")
        if step and total and step <= total:
            figures.append(f"about {(time.monotonic() - self._since) / step * (total - step):.0f} s left")
        return figures
