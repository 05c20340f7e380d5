"""A process forked from the launcher, for what may take its time: the launcher keeps listening, and can end it."""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import sys
import traceback
from typing import Any, Callable

from cloudtrain_launch import processes
from cloudtrain_launch.channel import Channel
from cloudtrain_launch.errors import LaunchError
from cloudtrain_launch.failure import describe_status
from cloudtrain_launch.output import ShowLine, Stream


def fork(serve: Callable[[socket.socket], object]) -> tuple[int, socket.socket, int]:
    """Run ``serve``, with its end of a channel, in a forked process that has nothing else of this one's.

    Returns the process id, our end of the channel, and the reading end of what it prints.
    """
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        theirs.close()
        os.close(writing)
        return pid, ours, reading
    try:
        os.setsid()
        processes.default_signals()
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (writing, 1), (writing, 2)):
            os.dup2(source, target)
        processes.let_go_of_inherited(keep={theirs.fileno()})
        serve(theirs)
    finally:
        os._exit(1)


class Helper:
    """A forked process as the launcher's loop sees it: its last word, what it prints, its end."""

    def __init__(
        self,
        serve: Callable[[socket.socket], object],
        log_path: str,
        show: ShowLine,
        complain: ShowLine,
        selector: selectors.BaseSelector,
    ) -> None:
        self.status: int | None = None
        """Exit status, once it has ended."""
        self.last_word: dict[str, Any] | None = None
        self._selector = selector
        self.pid, sock, output = fork(serve)
        self._channel = Channel(sock)
        self._stream = Stream(output, log_path, show, complain)
        selector.register(self._channel, selectors.EVENT_READ, self._hear)
        selector.register(self._stream, selectors.EVENT_READ, self._pump)

    @property
    def runs(self) -> bool:
        """Whether it has not ended yet."""
        return self.status is None

    def finish(self) -> None:
        """Read what it has left to say, and close."""
        if not self._stream.ended:
            self._selector.unregister(self._stream)
        self._stream.finish()
        if not self._channel.closed:
            self._selector.unregister(self._channel)
        self._channel.close()

    def _hear(self) -> None:
        for message in self._channel.receive():
            self.last_word = message
        if self._channel.closed:
            self._selector.unregister(self._channel)

    def _pump(self) -> None:
        self._stream.pump()
        if self._stream.ended:
            self._selector.unregister(self._stream)


class Chore(Helper):
    """One piece of work in a process of its own. What it prints is shown; what it returns is its outcome."""

    def __init__(
        self,
        name: str,
        work: Callable[[], dict[str, Any]],
        log_path: str,
        show: ShowLine,
        selector: selectors.BaseSelector,
    ) -> None:
        self._name = name
        launcher = os.getpid()
        super().__init__(lambda sock: _do(sock, launcher, work), log_path, show, show, selector)

    @property
    def outcome(self) -> dict[str, Any]:
        """What the work returned, or ``{"error": text}``. Ask once it has ended."""
        if self.last_word is None:
            return {"error": f"{self._name} {describe_status(self.status or 0)}"}
        return self.last_word


def _do(sock: socket.socket, launcher: int, work: Callable[[], dict[str, Any]]) -> None:
    processes.die_with_parent(launcher, signal.SIGKILL)
    try:
        outcome = work()
    except LaunchError as error:
        outcome = {"error": str(error)}
    except Exception as error:  # noqa: BLE001 - whatever it is, the launcher must hear it
        traceback.print_exc()
        outcome = {"error": f"{type(error).__name__}: {error}"}
    sock.sendall(json.dumps(outcome).encode() + b"\n")
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)
