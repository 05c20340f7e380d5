"""Azurite, Microsoft's own emulator of Blob storage, as a process beside the control plane."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from cloudtrain.errors import MissingError

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The well-known ones of every Azurite."""
_START_SECONDS = 60.0


class Azurite:
    """Answers at ``url`` until it is closed."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is for what it keeps. Raises MissingError where it is not installed or does not start."""
        folder.mkdir(parents=True, exist_ok=True)
        port = _free_port()
        self._log = (folder / "azurite.log").open("wb")
        command = [_program(), "--blobPort", str(port), "--location", str(folder)]
        command += ["--skipApiVersionCheck", "--disableTelemetry", "--silent", "--blobKeepAliveTimeout", "60"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, start_new_session=True
        )
        self.url = f"http://127.0.0.1:{port}"
        try:
            self._await(port)
        except MissingError:
            self.close()
            raise

    def close(self) -> None:
        """End it, and whatever it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # nothing of it is wanted any more
        self._process.wait()
        self._log.close()

    def _await(self, port: int) -> None:
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until and self._process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                return
            time.sleep(0.05)
        raise MissingError(f"azurite did not start; it said: {Path(self._log.name).read_text(errors='replace')[-500:]}")


def _program() -> str:
    found = os.environ.get("CLOUDTRAIN_AZURITE") or shutil.which("azurite-blob")
    if not found:
        raise MissingError("azurite is missing", hint="npm install -g azurite@3.35.0, which needs Node 20")
    return found


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port
