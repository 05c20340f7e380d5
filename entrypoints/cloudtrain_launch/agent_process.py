"""The launcher's side of the agent: starting it, the word to go, its outcome."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
from typing import Any

from cloudtrain_launch import helper, processes
from cloudtrain_launch.agent import serve
from cloudtrain_launch.channel import Channel
from cloudtrain_launch.output import ShowLine, Stream


class AgentProcess:
    """Torch elastic's agent, forked from this process if torch is loaded here, else a fresh interpreter."""

    def __init__(
        self, config_path: str, env: dict[str, str], log_path: str, show: ShowLine, selector: selectors.BaseSelector
    ) -> None:
        self.status: int | None = None
        """Exit status, once it has ended."""
        self.outcome: dict[str, Any] | None = None
        """Its last word: ``{"error": text or None}``."""
        self.words: list[str] = []
        """The last lines of what it printed, elastic's own messages."""
        self.went = False
        self._selector = selector
        launcher = os.getpid()
        self.pid, sock, output = helper.fork(lambda sock: _serve_or_exec(sock, launcher, config_path, env))
        self._channel = Channel(sock)
        self._stream = Stream(output, log_path, self._remember, complain=show)
        selector.register(self._channel, selectors.EVENT_READ, self._hear)
        selector.register(self._stream, selectors.EVENT_READ, self._pump)

    def go(self, **word: Any) -> None:
        """Let it meet the other nodes' agents and start the workers."""
        self.went = True
        self._channel.send(word)

    def kill(self) -> None:
        """SIGKILL, if it still runs."""
        if self.status is None:
            processes.send(self.pid, signal.SIGKILL)

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
            self.outcome = message
        if self._channel.closed:
            self._selector.unregister(self._channel)

    def _pump(self) -> None:
        self._stream.pump()
        if self._stream.ended:
            self._selector.unregister(self._stream)

    def _remember(self, line: str) -> None:
        self.words = [*self.words[-19:], line]


def _serve_or_exec(sock: socket.socket, launcher: int, config_path: str, env: dict[str, str]) -> None:
    if "torch" in sys.modules:
        os.environ.clear()
        os.environ.update(env)
        processes.die_with_parent(launcher)
        serve(sock, config_path, forked=True)
    sock.set_inheritable(True)
    argv = [sys.executable, "-u", "-m", "cloudtrain_launch.agent", str(sock.fileno()), str(launcher), config_path]
    os.execve(sys.executable, argv, env)
