"""The relay, between plain sockets of this machine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cloudtrain.emulator.relay import Relay

MANY = bytes(range(256)) * 16_384  # 4 MiB: more than any buffer on the way


@contextmanager
def _relayed(port: int) -> Iterator[int]:
    """A relay to a port of loopback; where it listens itself."""
    listener = socket.create_server(("127.0.0.1", 0))
    relay = Relay([(listener, port)])
    try:
        yield listener.getsockname()[1]
    finally:
        relay.close()
        assert [thread for thread in threading.enumerate() if thread.name == "relay"] == []


@contextmanager
def _echo() -> Iterator[int]:
    """A server that answers when its client has said all, and not before."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer(connection: socket.socket) -> None:
            with connection:
                said = b"".join(iter(lambda: connection.recv(1 << 16), b""))
                connection.sendall(said[::-1])

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,)).start()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _ask(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: sock.recv(1 << 16), b""))


def test_all_bytes_go_both_ways_and_an_end_is_passed_on_as_one() -> None:
    with _echo() as server, _relayed(server) as port:
        for data in (b"", b"x", MANY):
            assert _ask(port, data) == data[::-1]


def test_connections_do_not_wait_for_each_other() -> None:
    with (
        _echo() as server,
        _relayed(server) as port,
        socket.create_connection(("127.0.0.1", port), timeout=30),  # says nothing, and the server waits for it
    ):
        answers = [_ask(port, str(number).encode()) for number in range(20)]
    assert answers == [str(number).encode()[::-1] for number in range(20)]


def test_where_nobody_answers_the_connection_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with _relayed(port) as here:
        assert _ask(here, b"") == b""


def test_the_end_takes_open_connections_along() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with _relayed(server.getsockname()[1]) as port:
            client = socket.create_connection(("127.0.0.1", port), timeout=30)
            outside, _ = server.accept()
        with client, outside:
            assert client.recv(1) == b""
            assert outside.recv(1) == b""
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=30)
