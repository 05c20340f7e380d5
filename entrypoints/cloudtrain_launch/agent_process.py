"""The launcher's side of the agent: starting it, the word to go, its outcome."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
from typing import Any

from cloudtrain_launch import processes
from cloudtrain_launch.agent import serve
from cloudtrain_launch.helper import Helper
from cloudtrain_launch.output import ShowLine


class AgentProcess(Helper):
    """Torch elastic's agent, forked from this process if torch is loaded here, else a fresh interpreter.

    Its last word is ``{"error": text or None}``.
    """

    def __init__(
        self, config_path: str, env: dict[str, str], log_path: str, show: ShowLine, selector: selectors.BaseSelector
    ) -> None:
        self.words: list[str] = []
        """The last lines of what it printed, elastic's own messages."""
        self.went = False
        launcher = os.getpid()
        super().__init__(
            lambda sock: _serve_or_exec(sock, launcher, config_path, env), log_path, self._remember, show, selector
        )

    def go(self, **word: Any) -> None:
        """Let it meet the other nodes' agents and start the workers."""
        self.went = True
        self._channel.send(word)

    def kill(self) -> None:
        """SIGKILL, if it still runs."""
        if self.runs:
            processes.send(self.pid, signal.SIGKILL)

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
