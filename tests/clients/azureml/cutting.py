"""A wire to a server that is cut in the middle of what is sent."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

_PIECE = 1 << 16


class Wire:
    """Takes connections at ``url`` and hands on what is sent to the server."""

    def __init__(self, server: str) -> None:
        self._target = (urlsplit(server).hostname, urlsplit(server).port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cut_after: int | None = None
        """Bytes, of all connections together; then the one that sends them ends, once."""
        self.sent = 0
        self.stored: list[str] = []
        """Paths of the PUTs that have come, as far as a request begins a piece: with small bodies they do."""
        self.cuts = 0
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        """End all connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in self._open:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for sock in self._open:
            sock.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            self._open += [client, server]
            for pair, counts in (((client, server), True), ((server, client), False)):
                self._threads.append(threading.Thread(target=self._hand_on, args=(*pair, counts)))
                self._threads[-1].start()

    def _hand_on(self, one: socket.socket, other: socket.socket, counts: bool) -> None:
        with suppress(OSError):
            while piece := one.recv(_PIECE):
                if counts and piece.startswith(b"PUT "):
                    self.stored.append(piece.split()[1].partition(b"?")[0].decode())
                if counts and self._is_cut(len(piece)):
                    break
                other.sendall(piece)
        for sock in (one, other):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _is_cut(self, more: int) -> bool:
        with self._lock:
            self.sent += more
            if self.cut_after is None or self.sent < self.cut_after:
                return False
            self.cut_after = None
            self.cuts += 1
            return True


@contextmanager
def wire_to(server: str) -> Iterator[Wire]:
    """As long as it is needed."""
    wire = Wire(server)
    try:
        yield wire
    finally:
        wire.close()
