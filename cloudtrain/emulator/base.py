"""What the emulator gives each control plane, and what it wants of it.

Emulator (__init__.py)  starts one control plane for each cloud, and gives a command the variables to reach them
  servers.py            object stores and logs by existing servers: moto, fake-gcs-server, azurite
  web.py                serves a WSGI application on loopback, plain or behind TLS, with call faults in front of it
  faults.py             what is to go wrong, and when
  nodes.py              the containers of one start of a job: real processes that run launch.py
  sagemaker/ vertex/ azureml/   plane.py: open_plane(site) -> Plane; validates, and takes jobs through their states
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from cloudtrain.emulator.faults import Faults
    from cloudtrain.emulator.nodes import Nodes

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Clock:
    """Real time for what jobs do, shortened time for what the service takes: starting machines, building images."""

    def __init__(self, speed: float) -> None:
        """``speed`` 60: a minute of the service's takes a second."""
        self.speed = speed

    def scaled(self, service_seconds: float) -> float:
        """Seconds here for what takes ``service_seconds`` in the cloud: delays, graces, polls and time limits."""
        return service_seconds / self.speed

    def wait(self, service_seconds: float, ended: threading.Event) -> bool:
        """Wait, or until ``ended`` is set; whether it is."""
        return ended.wait(self.scaled(service_seconds))

    @staticmethod
    def now() -> float:
        """Seconds since the epoch, unscaled: what timestamps show."""
        return time.time()


class NodePlan(NamedTuple):
    """One container that is to be started."""

    root: Path
    """Folder that stands for its file system, filled."""
    launch: Path
    """launch.py as it came with the job, by its path on this machine."""
    cwd: Path
    env: Mapping[str, str]
    """All of the container's environment that the contract gives; nothing of this process's is added but PATH & co."""
    log: Path
    """File to which its standard output and error are appended."""


class Site(NamedTuple):
    """What a control plane works with."""

    folder: Path
    """Its own, empty at the start, removed at the end."""
    clock: Clock
    faults: Faults
    start_nodes: Callable[[Sequence[NodePlan]], Nodes]
    """Start all containers of one start of a job; see nodes.py."""


class TakenJob(NamedTuple):
    """One that a control plane knows."""

    name: str
    """By which its user calls it: what the request had, no number of the service's."""
    is_over: bool


class Surface(Protocol):
    """What ``web.py`` serves."""

    app: WsgiApp
    """Call faults come from ``web.py`` before it is asked."""

    def operation(self, environ: Mapping[str, Any]) -> str:
        """The call's name as the service's documentation has it (``CreateTrainingJob``), "" for none; for faults."""

    def fault_response(self, status: int, code: str, message: str) -> tuple[bytes, Mapping[str, str]]:
        """Body and headers of an error as this service words it, for what ``web.py`` answers in its place. ``code`` is
        ``throttle``, ``expired-token``, ``error`` (a fault of the fault file) or ``fault`` (the plane has raised)."""


class Plane(Surface, Protocol):
    """One cloud's control plane, with its HTTP surface."""

    needs_tls: bool

    @property
    def requests(self) -> Sequence[Mapping[str, Any]]:
        """The jobs that it was asked to create, also those that it refused, in the service's own form."""

    def opened(self, url: str) -> Mapping[str, str]:
        """Called once, when ``app`` answers at ``url``. Returns the variables by which clients find the service, the
        vendors' own first. Starts what the plane needs beside it."""

    def jobs(self) -> Sequence[TakenJob]:
        """Those that were taken and not deleted, in their order. May be asked between ``opened`` and ``close``."""

    def close(self) -> None:
        """End all jobs and servers; leave no process."""
