"""A bar on a terminal for bytes that come or go, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cloudtrain.providers.port import Progress, silent

if TYPE_CHECKING:
    from rich import progress as drawing

_WORTH_SHOWING = 1 << 20
"""Bytes; less is over before a bar could be read."""


@contextmanager
def bar(words: str, *, shown: bool) -> Iterator[Progress]:
    """``words`` beside the bar, which is on standard error, and there only once there are enough bytes to wait for."""
    if not shown or sys.stderr is None or not sys.stderr.isatty():
        yield silent
        return
    drawn = _Bar(words)
    try:
        yield drawn
    finally:
        drawn.close()


class _Bar:
    def __init__(self, words: str) -> None:
        self._words = words
        self._drawn: drawing.Progress | None = None

    def __call__(self, done: int, total: int) -> None:
        if self._drawn is None and total >= _WORTH_SHOWING:
            self._drawn = _begun(self._words)
        if self._drawn is not None:
            self._drawn.update(self._drawn.task_ids[0], completed=done, total=total)

    def close(self) -> None:
        if self._drawn is not None:
            self._drawn.stop()


def _begun(words: str) -> drawing.Progress:
    """Rich is loaded only now."""
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}"), progress.BarColumn(), progress.DownloadColumn(),
        progress.TransferSpeedColumn(), progress.TimeRemainingColumn(),
    )  # fmt: skip
    drawn = progress.Progress(*columns, console=Console(stderr=True), transient=True)
    drawn.add_task(words)
    drawn.start()
    return drawn
