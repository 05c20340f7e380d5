"""What the command line or a caller of ``ct.run`` may decide beside the job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Isolation = Literal["auto", "netns", "none"]
Engine = Literal["auto", "fork", "agents"]
Device = Literal["auto", "cpu", "gpu"]


@dataclass(frozen=True, kw_only=True)
class LocalOptions:
    """Options of a local run; None leaves a choice to the job."""

    nodes: int | None = None
    processes: int | None = None
    """Processes per node."""
    args: tuple[str, ...] = ()
    """Put behind the job's own arguments."""
    data: Mapping[str, Path] = field(default_factory=dict)
    """Channel -> folder here, instead of the job's."""
    isolation: Isolation = "auto"
    engine: Engine = "auto"
    device: Device = "auto"
    grace: float = 30.0
    """Seconds between SIGTERM and SIGKILL."""
    start_timeout: float = 600.0
    """Seconds for all nodes to connect and all workers to join."""
    resume: str | None = None
    """An earlier run, ``latest`` for the newest, whose checkpoints this one continues from."""
