"""All of it together: planes, their servers, nodes, and one end for everything."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, cast

from cloudtrain.emulator import shell
from cloudtrain.emulator.base import Clock, NodePlan, Plane, Site, TakenJob
from cloudtrain.emulator.faults import Faults
from cloudtrain.emulator.keeper import Keeper
from cloudtrain.emulator.nodes import Nodes
from cloudtrain.emulator.web import Server
from cloudtrain.errors import MissingError, SpecError
from cloudtrain.providers.local.client import require_torch
from cloudtrain.providers.registry import NAMES, known

if TYPE_CHECKING:
    import ssl

    from cloudtrain.providers.local.options import Isolation

SPEED = 60.0
"""A minute of the service's takes a second."""


class _Opened(NamedTuple):
    """One cloud."""

    plane: Plane
    server: Server
    env: Mapping[str, str]


class Emulator:
    """Clouds on this machine, from here to ``close`` or the end of the ``with`` block. Any number may be open."""

    def __init__(
        self,
        providers: Collection[str] | None = None,
        *,
        speed: float = SPEED,
        faults: Faults | Path | None = None,
        isolation: Isolation = "auto",
    ) -> None:
        """``providers`` None: all whose packages are installed; ``missing`` tells of the others. ``speed``: how much
        shorter than in the cloud the service's own delays are; jobs take the time they take. ``faults``: what is to go
        wrong, or the file that says so. ``isolation``: whether nodes have networks of their own, as with ``run``.

        Raises SpecError, JobFileError for the fault file, MissingError for what this machine lacks.
        """
        wanted = list(NAMES if providers is None else dict.fromkeys(known(name, ours=True) for name in providers))
        if not wanted or not speed > 0:
            raise SpecError("the emulator needs at least one provider, and a speed above 0")
        self.missing: Mapping[str, str] = {}
        """Provider -> why it cannot be emulated here."""
        self._faults = Faults.load(faults) if isinstance(faults, Path) else faults or Faults.none()
        require_torch()
        self._clock = Clock(speed)
        self._isolation: Isolation = isolation
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self._nodes: list[Nodes] = []
        self._opened: dict[str, _Opened] = {}
        self._tls: tuple[ssl.SSLContext, dict[str, str]] | None = None
        self._opening: dict[str, Future[_Opened]] = {}
        self._keeper: Keeper | None = None
        self._folder = _folder()
        # Lives until the end, since the kernel ends a plane's servers with the thread that started them. One, because
        # packages that are imported by two threads at once get in each other's way (seen: KeyError, CPython 3.11).
        self._opener = ThreadPoolExecutor(1, thread_name_prefix="emulator")
        try:
            self._keeper = Keeper(self._folder)
            self._open_all(wanted, needs_all=providers is not None)
        except BaseException:
            self.close()
            raise

    @property
    def env(self) -> dict[str, str]:
        """Variables by which clients find the emulated clouds, and nothing else. See ``environment``."""
        found = shell.closed(self._folder / "nothing")
        if self._tls:
            found.update(self._tls[1])
        for opened in self._opened.values():
            found.update(opened.env)
        return found

    def environment(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment of a command that is to use the emulated clouds: ``base``, by default this process's, less
        what may lead to real accounts, with ``env``, and with what keeps cloudtrain's ledger apart and polls often."""
        base = os.environ if base is None else base
        return {
            **shell.without_real(base),
            **shell.past_proxies(base),
            **shell.own_home(self._folder),
            "CLOUDTRAIN_POLL_SECONDS": shell.POLL_SECONDS,
            **self.env,
        }

    @property
    def providers(self) -> tuple[str, ...]:
        """Those that are emulated."""
        return tuple(self._opened)

    def plane(self, provider: str) -> Plane:
        """One cloud's control plane; its ``requests`` are what it was asked to create. Raises SpecError."""
        if provider not in self._opened:
            raise SpecError(f"{provider} is not emulated here; emulated: {', '.join(self._opened)}")
        return self._opened[provider].plane

    def jobs(self) -> dict[str, Sequence[TakenJob]]:
        """Provider -> the jobs that its control plane has taken and nobody has deleted, in their order."""
        return {name: opened.plane.jobs() for name, opened in self._opened.items()}

    def unused_faults(self) -> list[str]:
        """The fault file's entries for calls and jobs of which nothing has come so far: ``calls[0] (throttle of
        CreateTrainingJob)``."""
        return self._faults.unused()

    def url(self, provider: str) -> str:
        """Where its control plane answers."""
        self.plane(provider)
        return self._opened[provider].server.url

    def close(self) -> None:
        """End all jobs, servers and processes, and remove what they left, whatever goes wrong with one of them."""
        self._ending.set()
        for future in self._opening.values():
            future.cancel()
        wait(self._opening.values())
        opened = [
            future.result() for future in self._opening.values() if not (future.cancelled() or future.exception())
        ]
        self._opening, self._opened = {}, {}
        with contextlib.ExitStack() as stack:  # the last that is put in is the first that is done
            stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
            if self._keeper:
                stack.callback(self._keeper.close)
            stack.callback(self._opener.shutdown)
            stack.callback(self._close_nodes)
            for each in opened:
                stack.callback(each.plane.close)
                stack.callback(each.server.close)

    def __enter__(self) -> Emulator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- opening -----------------------------------------------------------------------------------------------------

    def _open_all(self, wanted: Sequence[str], *, needs_all: bool) -> None:
        for name in wanted:
            self._opening[name] = self._opener.submit(self._open, name)
        errors = {}
        for name, future in self._opening.items():
            error = future.exception()
            if error is None:
                self._opened[name] = future.result()
            else:
                errors[name] = error
        for error in errors.values():
            if needs_all or not self._opened or not isinstance(error, MissingError):
                raise error
        self.missing = {name: str(error) for name, error in errors.items()}

    def _open(self, provider: str) -> _Opened:
        assert self._keeper
        folder = self._folder / provider
        folder.mkdir()
        site = Site(folder, self._clock, self._faults, self._start_nodes)
        try:
            module = import_module(f"cloudtrain.emulator.{provider}.plane")
        except ImportError as error:
            raise MissingError(
                f"{provider} cannot be emulated: {error}", hint=f"pip install 'cloudtrain[emulator,{provider}]'"
            ) from error
        plane = cast("Plane", module.open_plane(site))
        server = None
        try:
            tls = self._certificate() if plane.needs_tls else None
            server = Server(plane, self._faults, provider, tls=tls, on_call=self._keeper.warm)
            return _Opened(plane, server, plane.opened(server.url))
        except BaseException:
            if server:
                server.close()
            plane.close()
            raise

    def _certificate(self) -> ssl.SSLContext:
        from cloudtrain.emulator import certificates

        with self._lock:
            self._tls = self._tls or certificates.issue(self._folder / "trusted.pem")
            return self._tls[0]

    # -- nodes -------------------------------------------------------------------------------------------------------

    def _start_nodes(self, plans: Sequence[NodePlan]) -> Nodes:
        assert self._keeper
        nodes = Nodes(plans, self._isolation, self._keeper.launch, self._ending.is_set)
        with self._lock:
            self._nodes = [*(each for each in self._nodes if not each.is_closed), nodes]
        return nodes

    def _close_nodes(self) -> None:
        with self._lock:
            left, self._nodes = self._nodes, []
        for nodes in left:
            nodes.close()


def _folder() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="cloudtrain-emulator-"))
    except OSError as error:
        raise MissingError(
            f"cannot make a temporary folder: {error}", hint="free some space there, or set TMPDIR to another folder"
        ) from error
