"""The emulator's second process (keeping.py) as the emulator sees it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from cloudtrain.providers.local.client import Launch, Process, by_python, host_environment, usual_engine


class Keeper:
    """Its end in the emulator. ``warm`` and ``host`` may be called from any thread."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is the emulator's own, and is gone after ``close``. Raises OSError."""
        self._lock = threading.Lock()
        # Messages as such, where they are sent at all; elsewhere only the end counts.
        kind = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_STREAM
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, kind)
        command = (
            "import sys; getattr(sys.flags, 'safe_path', False) or sys.path.pop(0); "
            f"from cloudtrain.emulator import keeping; keeping.main({theirs.fileno()}, {str(folder)!r})"
        )
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-c", command],
                stdin=subprocess.DEVNULL,
                env=host_environment({}),
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # the terminal's Ctrl-C is for the emulator alone
            )
        self._is_warm = False

    def warm(self) -> None:
        """Have torch loaded, in that process."""
        if not self._is_warm and self.launch is not by_python:
            self._is_warm = True
            with self._lock, contextlib.suppress(OSError):
                self._socket.send(json.dumps({"kind": "warm"}).encode())

    @property
    def launch(self) -> Launch:
        """How host processes are started."""
        return self._fork if usual_engine() == "fork" and hasattr(os, "pidfd_open") else by_python

    def _fork(self, isolation: str, engine: str, folder: Path, _: Mapping[str, str]) -> Process:
        """See ``client.Launch``; the environment is this process's, and nodes of the emulator get none of it."""
        in_read, in_write = os.pipe()
        out_read, out_write = os.pipe()
        try:
            message = {"kind": "host", "isolation": isolation, "engine": engine, "folder": str(folder)}
            with self._lock:
                socket.send_fds(self._socket, [json.dumps(message).encode()], [in_read, out_write])
                pidfds = socket.recv_fds(self._socket, 1, 1)[1]
            if not pidfds:
                raise OSError("the process that starts them has ended")
        except OSError:
            for end in (in_write, out_read):
                os.close(end)
            raise
        finally:
            for end in (in_read, out_write):
                os.close(end)
        return _Forked(pidfds[0], os.fdopen(in_write, "wb", 0), os.fdopen(out_read, "rb", 0))

    def close(self) -> None:
        """Wait until it has tidied up."""
        self._socket.close()
        self._process.wait()


class _Forked:
    """A host process, of which the keeper is the parent."""

    def __init__(self, pidfd: int, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self._pidfd = pidfd
        self.stdin: IO[bytes] | None = stdin
        self.stdout: IO[bytes] | None = stdout

    def send_signal(self, sig: int) -> None:
        """Unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(self._pidfd, sig)

    def poll(self) -> int | None:
        """Its status, which nobody is told: 0."""
        return None if self._pidfd >= 0 and not self._ends_within(0) else 0

    def wait(self, timeout: float | None = None) -> int:
        """For its end. Raises subprocess.TimeoutExpired."""
        if self._pidfd >= 0 and not self._ends_within(timeout):
            raise subprocess.TimeoutExpired("host process", timeout or 0)
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
        return 0

    def _ends_within(self, seconds: float | None) -> bool:
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(None if seconds is None else seconds * 1000))
