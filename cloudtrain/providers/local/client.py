"""The port to the host process: start it, hand it the request, hear the nodes, stop them."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NamedTuple, Protocol

from cloudtrain import shipped
from cloudtrain.errors import MissingError
from cloudtrain.providers.local.options import LocalOptions

Event = dict[str, Any]
_TORCH_SECONDS = 120.0
"""For torch to be loaded by a fresh interpreter, on a machine that has much to do."""


class Container(NamedTuple):
    """How a cloud starts a node."""

    launch: Path
    """The launch.py that has come with the job."""
    folder: Path
    """The folder it is started in."""
    log: Path | None = None
    """In the emulator: the file to which all that the node prints is appended. Its environment is then the one that it
    is given and nothing of this process's, launch.py is the very file above, and nobody hears it but by that log."""


class Process(Protocol):
    """What is needed of a process that was started; ``subprocess.Popen`` is one."""

    @property
    def stdin(self) -> IO[bytes] | None: ...

    @property
    def stdout(self) -> IO[bytes] | None: ...

    def send_signal(self, sig: int) -> None: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...


Launch = Callable[[str, str, Path, Mapping[str, str]], Process]
"""Starts host.py with isolation, engine and folder, in that environment. Raises OSError."""


def by_python(isolation: str, engine: str, folder: Path, env: Mapping[str, str]) -> Process:
    """In a new interpreter."""
    command = (
        "import sys; getattr(sys.flags, 'safe_path', False) or sys.path.pop(0); "
        "from cloudtrain.providers.local import host; "
        f"host.main({isolation!r}, {engine!r}, {str(folder)!r})"
    )
    return subprocess.Popen(
        [sys.executable, "-u", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env
    )  # fmt: skip


class HostProcess:
    """One host process (host.py), started early and given its request later."""

    def __init__(
        self, isolation: str, engine: str, extra_env: Mapping[str, str] | None = None, launch: Launch = by_python
    ) -> None:
        self.isolation = isolation
        self.engine = engine
        self.folder, self._listener = _folder_to_meet_in()
        self._selector = selectors.DefaultSelector()
        self.env = host_environment(extra_env or {})
        try:
            self._process = launch(isolation, engine, self.folder, self.env)
        except OSError as error:
            self._listener.close()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise MissingError(f"cannot start {sys.executable}: {error.strerror or error}") from error
        assert self._process.stdin and self._process.stdout
        os.set_blocking(self._process.stdout.fileno(), False)
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._selector.register(self._process.stdout, selectors.EVENT_READ, _Lines(self._process.stdout.fileno()))
        self._given = False
        self.ended = False
        """The host process has closed its output: no node is left."""

    def start(
        self,
        nodes: list[dict[str, str]],
        *,
        secrets: Mapping[str, str] = MappingProxyType({}),
        shm_gib: int | None = None,
        grace: float | None = None,
        lock: Path | None = None,
        preload: Sequence[str] = (),
        containers: Sequence[Container] = (),
        relayed: Collection[int] = (),
    ) -> None:
        """Hand over the request.

        ``secrets`` are variables with their values, for the nodes' environment alone; ``lock`` is the run's, which the
        host process takes when this one is gone before the nodes are; ``preload`` are modules that all ranks would
        import, loaded once before the fork. ``containers``: how each node is started, where the nodes' environments are
        those of a cloud's containers. ``grace`` None: nobody but the caller stops nodes, and with this process they are
        killed at once. ``relayed``: ports of loopback of which sockets that listen in the nodes' own networks are sent
        to the socket ``relay`` of ``folder``.
        """
        self._given = True
        self._say(
            kind="run",
            nodes=nodes,
            env=self.env,
            relayed=sorted(relayed),
            secrets={f"CLOUDTRAIN_SECRET_{name}": value for name, value in secrets.items()},
            events=str(self.folder / "events"),
            folder=str(self.folder),
            launch=str(shipped.entrypoints() / "launch.py"),
            containers=[
                {"launch": str(made.launch), "folder": str(made.folder), "log": str(made.log) if made.log else None}
                for made in containers
            ],
            shm_gib=shm_gib,
            grace=grace,
            lock=str(lock) if lock else None,
            preload=list(preload),
        )

    def stop(self) -> None:
        """SIGTERM to every node's launcher; SIGKILL when its grace is long over."""
        self._say(kind="stop")
        self._process.send_signal(signal.SIGCONT)  # it may have been stopped, and must not stay behind

    def signal(self, number: int, node: int | None = None) -> None:
        """A signal to one node's launcher, or to all; whoever has ended gets none."""
        self._say(kind="signal", number=number, node=node)

    def kill(self) -> None:
        """SIGKILL to every node's launcher; the kernel and the host process end what is below."""
        self._say(kind="kill")
        self._process.send_signal(signal.SIGCONT)

    def events(self, timeout: float) -> Iterator[Event]:
        """What has been said since, by the host process and by the nodes; waits up to ``timeout`` seconds for some."""
        for key, _ in self._selector.select(timeout):
            if key.data is None:
                self._accept()
                continue
            lines: _Lines = key.data
            yield from lines.read()
            if lines.ended:
                self._selector.unregister(key.fileobj)
                if key.fileobj is self._process.stdout:
                    self.ended = True
                else:
                    key.fileobj.close()  # type: ignore[union-attr]

    def status(self) -> int | None:
        """Exit status of the host process, once it has ended; negative is a signal."""
        if self.ended:  # its output closes a moment before its status is there
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)
        return self._process.poll()

    def drained(self) -> bool:
        """True when no node's connection is open any more, so nothing further will be said."""
        return self.ended and len(self._selector.get_map()) == 1

    def close(self) -> None:
        """End the host process and remove its folder. Nodes that still run are stopped by it first.

        One that has not been given anything is killed: it would end only when it has loaded torch.
        """
        assert self._process.stdin and self._process.stdout
        if not self._given:
            self._process.send_signal(signal.SIGKILL)
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass
        for key in list(self._selector.get_map().values()):
            if key.fileobj is not self._process.stdout:
                key.fileobj.close()  # type: ignore[union-attr]  # before the wait: nodes wait for who hears them
        self._process.send_signal(signal.SIGCONT)
        self._process.wait()
        self._process.stdout.close()
        self._selector.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return
        sock.setblocking(False)
        self._selector.register(sock, selectors.EVENT_READ, _Lines(sock.fileno()))

    def _say(self, **message: Any) -> None:
        """Unbuffered, since a signal handler may come in between."""
        assert self._process.stdin
        data = memoryview(json.dumps(message).encode() + b"\n")
        try:
            while data:
                data = data[os.write(self._process.stdin.fileno(), data) :]
        except (BrokenPipeError, ValueError):  # it has ended; the events tell
            pass


def _folder_to_meet_in() -> tuple[Path, socket.socket]:
    """A temporary folder and a socket that listens in it. Raises MissingError if the disk does not let us."""
    listener, folder = socket.socket(socket.AF_UNIX), ""
    try:
        # The path of a Unix socket has room for about a hundred bytes, and TMPDIR may be long.
        place = tempfile.gettempdir()
        folder = tempfile.mkdtemp(prefix="cloudtrain-", dir=place if len(os.fsencode(place)) < 60 else "/tmp")
        listener.bind(str(Path(folder, "events")))
    except OSError as error:
        listener.close()
        shutil.rmtree(folder, ignore_errors=True)
        raise MissingError(
            f"cannot make a temporary folder: {error}", hint="free some space there, or set TMPDIR to another folder"
        ) from error
    listener.listen(128)
    listener.setblocking(False)
    return Path(folder), listener


class _Lines:
    """JSON lines from a file descriptor that does not block."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pending = bytearray()
        self.ended = False

    def read(self) -> Iterator[Event]:
        try:
            data = os.read(self._fd, 1 << 20)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.ended = True
            return
        self._pending += data
        *lines, rest = bytes(self._pending).split(b"\n")
        self._pending = bytearray(rest)
        yield from map(json.loads, lines)


def host_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """This process's environment with ``extra``, and our entrypoints importable. Foreign launchers' variables are
    removed by the node's launcher; those that torch reads when it is loaded are removed here."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PET_", "TORCHELASTIC_"))}
    env.update(extra)
    paths = [str(shipped.entrypoints()), env.get("PYTHONPATH", "")]
    env["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    return env


def host_for(options: LocalOptions, extra_env: Mapping[str, str] | None = None) -> HostProcess:
    """Start the host process, so that it loads torch while the job is read. Raises MissingError without torch."""
    require_torch()
    return HostProcess(options.isolation, usual_engine() if options.engine == "auto" else options.engine, extra_env)


def usual_engine() -> str:
    """macOS frameworks do not survive a fork."""
    return "fork" if sys.platform == "linux" else "agents"


def require_torch() -> None:
    """Raise MissingError where no local run is possible."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise MissingError(
            "a local run needs torch, which this Python does not have", hint="pip install 'cloudtrain[local]'"
        )
    if sys.platform == "win32":
        raise MissingError("`run` needs Linux or macOS", hint="use WSL; all other commands work on Windows")


def broken_torch() -> str:
    """What keeps a fresh interpreter from loading torch; "" if nothing does."""
    load = (
        "import sys; getattr(sys.flags, 'safe_path', False) or sys.path.pop(0); import torch.distributed.launcher.api"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-c", load],
            env=host_environment({}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_TORCH_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):  # this machine is too busy to say
        return ""
    said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    return "" if done.returncode == 0 else said or f"Python ends with status {done.returncode}"


def torch_is_broken(problem: str) -> MissingError:
    """What to raise where torch is there and cannot be loaded."""
    return MissingError(
        f"torch cannot be loaded by {sys.executable}: {problem}",
        hint="`python -c 'import torch'` shows all of it; pip install --force-reinstall torch, or use another Python",
    )
