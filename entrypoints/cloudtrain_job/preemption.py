"""SIGTERM, as a flag. Nothing is saved and nobody is talked to inside a signal handler."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

PREEMPTED = 143  # 128 + SIGTERM: left on request, after a save that all ranks agreed on


class StopRequest:
    """Whether this process was told to stop: ``made`` is True from the first SIGTERM on."""

    def __init__(self) -> None:
        self.made = False
        self._before: Any = None

    def listen(self) -> None:
        """Take SIGTERM from now on; a handler the script installed before still runs. Main thread only."""
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGTERM, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.made = True
        if callable(self._before):
            self._before(number, frame)
