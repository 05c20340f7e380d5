"""Lets nodes in networks of their own reach servers of this one's loopback, under the same address and port.

The host process makes sockets that listen in the nodes' networks and hands them over; a socket stays in the network
that it was made in, whoever holds it. So nothing that a node is told has to be rewritten, certificates fit, and when
this process is gone, however it ends, the sockets are, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Sequence

_HOST = "127.0.0.1"
_PIECE = 1 << 16


class Relay:
    """One thread that passes bytes on, from its start to ``close``."""

    def __init__(self, listeners: Sequence[tuple[socket.socket, int]]) -> None:
        """Sockets that listen, each with the port of loopback to which its connections go. Takes them over."""
        self._listeners = listeners
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End all connections."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        for listener, port in self._listeners:
            self._loop.create_task(self._serve(listener, port))
        try:
            self._loop.run_forever()
        finally:
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self._loop.close()

    async def _serve(self, listener: socket.socket, port: int) -> None:
        with listener:
            listener.setblocking(False)
            connections: set[asyncio.Task[None]] = set()
            while True:
                inside, _ = await self._loop.sock_accept(listener)
                task = self._loop.create_task(self._connect(inside, port))
                connections.add(task)
                task.add_done_callback(connections.discard)

    async def _connect(self, inside: socket.socket, port: int) -> None:
        with inside, socket.socket() as outside, contextlib.suppress(OSError):
            for end in (inside, outside):
                end.setblocking(False)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.sock_connect(outside, (_HOST, port))
            ways = [self._loop.create_task(self._pass(*way)) for way in ((inside, outside), (outside, inside))]
            try:
                await asyncio.gather(*ways)
            finally:  # neither may still wait for a socket that is closed, whose number is then another one's
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)

    async def _pass(self, source: socket.socket, target: socket.socket) -> None:
        while data := await self._loop.sock_recv(source, _PIECE):
            await self._loop.sock_sendall(target, data)
        target.shutdown(socket.SHUT_WR)
