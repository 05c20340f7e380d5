"""Where a node's launcher says what happens: text for a cloud's log stream, JSON lines for whoever follows the run."""

from __future__ import annotations

import contextlib
import select
import socket
import sys
from typing import Any, Union

from cloudtrain_launch.channel import Channel

_PRESSED_BYTES = 1 << 20


class TextSink:
    """``[node/rank] text`` on standard output, the launcher's own words as ``[node/-]``."""

    pressed = False
    wants_words = True

    def __init__(self, node: int) -> None:
        self._node = node

    def line(self, rank: int | None, text: str) -> None:
        who = "-" if rank is None else str(rank)
        # One write with its newline, so that lines of several processes cannot join. Nobody reading is no reason to
        # end the training.
        with contextlib.suppress(OSError):
            sys.stdout.buffer.write(f"[{self._node}/{who}] {text}\n".encode("utf-8", "backslashreplace"))
            sys.stdout.buffer.flush()

    def event(self, kind: str, **what: Any) -> None:
        """Events are for followers; the text stream has the lines and the report."""

    def flush(self) -> None:
        """Lines are written at once."""

    def close(self) -> None:
        pass


class EventSink:
    """JSON lines on an inherited socket; ``pressed`` when the follower does not keep up."""

    wants_words = False

    def __init__(self, node: int, fd: int) -> None:
        self._node = node
        self._channel = Channel(socket.socket(fileno=fd))

    @property
    def pressed(self) -> bool:
        """Whether so much is queued that ranks should not be read for a while."""
        return not self._channel.closed and self._channel.pending > _PRESSED_BYTES

    def line(self, rank: int | None, text: str) -> None:
        self.event("line", rank=rank, text=text)

    def event(self, kind: str, **what: Any) -> None:
        self._channel.send({"kind": kind, "node": self._node, **what})

    def flush(self) -> None:
        """Send what the follower takes now."""
        self._channel.flush()

    def close(self) -> None:
        """Hand over what is still queued, the report above all, however long the follower pauses (its terminal or pager
        may), unless it is gone. Whoever wants this to end stops the follower, or kills this process."""
        while self._channel.pending and not self._channel.closed:
            select.select([], [self._channel], [], 0.5)
            self._channel.flush()
        self._channel.close()


Sink = Union[TextSink, EventSink]
