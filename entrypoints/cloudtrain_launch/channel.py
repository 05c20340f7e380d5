"""JSON lines over a socket, without ever blocking: between launchers, from workers, to whoever follows the run."""

from __future__ import annotations

import json
import socket
from typing import Any, Callable

Message = dict[str, Any]
MAX_LINE = 4 << 20
"""Bytes of one message; a peer that sends more is not one of ours."""


class Channel:
    """One end of a connection. ``receive`` and ``flush`` never block; ``closed`` tells that the peer is gone."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.closed = False
        self._incoming = bytearray()
        self._outgoing = bytearray()

    def fileno(self) -> int:
        """For selectors."""
        return self.sock.fileno()

    @property
    def pending(self) -> int:
        """Bytes accepted by ``send`` that the peer has not taken yet."""
        return len(self._outgoing)

    def send(self, message: Message) -> None:
        """Queue one message and send what goes out now."""
        if not self.closed:
            self._outgoing += json.dumps(message).encode() + b"\n"
            self.flush()

    def flush(self) -> None:
        """Send as much as the peer takes."""
        while self._outgoing and not self.closed:
            try:
                sent = self.sock.send(memoryview(self._outgoing)[: 1 << 18])
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self.closed = True
                return
            del self._outgoing[:sent]

    def receive(self) -> list[Message]:
        """Every whole message that has arrived. Garbage closes the connection."""
        self._read()
        *lines, rest = bytes(self._incoming).split(b"\n")
        self._incoming = bytearray(rest)
        if len(rest) > MAX_LINE:
            self.closed = True
        messages = []
        for line in lines:
            message = _decode(line)
            if message is None:
                self.closed = True
                break
            messages.append(message)
        return messages

    def _read(self) -> None:
        while len(self._incoming) <= MAX_LINE:
            try:
                data = self.sock.recv(1 << 16)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                data = b""
            if not data:
                self.closed = True
                return
            self._incoming += data

    def close(self) -> None:
        """Close at once; what is queued is dropped."""
        self.closed = True
        self.sock.close()


def _decode(line: bytes) -> Message | None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


Handler = Callable[[Message], None]
