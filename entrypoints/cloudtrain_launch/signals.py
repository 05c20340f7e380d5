"""The signals that end a node: they wake the launcher's loop, which takes them when it comes round."""

from __future__ import annotations

import contextlib
import selectors
import signal
import socket

from cloudtrain_launch import processes


class Signals:
    """Caught from the start on, those that were held back before included."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._numbers: list[int] = []
        # A wake-up goes through a socket: one that comes just before the loop waits would else be slept through.
        self._reading, self._writing = socket.socketpair()
        for end in (self._reading, self._writing):
            end.setblocking(False)
        signal.set_wakeup_fd(self._writing.fileno(), warn_on_full_buffer=False)
        selector.register(self._reading, selectors.EVENT_READ, self._empty)
        for sig in processes.ENDING:
            signal.signal(sig, lambda number, _: self._numbers.append(number))
        processes.let_in()
        signal.signal(signal.SIGCHLD, lambda *_: None)  # only to wake

    def taken(self) -> str | None:
        """The name of the first one since the last call."""
        if not self._numbers:
            return None
        name = signal.Signals(self._numbers[0]).name
        self._numbers.clear()
        return name

    def close(self) -> None:
        """Wake no one any more. The handlers stay: what comes now must not cut the end short."""
        signal.set_wakeup_fd(-1)

    def _empty(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._reading.recv(4096):
                pass
