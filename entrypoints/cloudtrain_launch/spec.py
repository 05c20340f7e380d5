"""What to run: the job as plain data in a JSON file that travels with the code. The same for every node and rank."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields

from cloudtrain_launch.errors import LaunchError


@dataclass(frozen=True)
class LaunchSpec:
    """The launch spec, version 1. ``args`` and ``env`` may hold ``${data.x}`` and friends."""

    run_id: str
    kind: str
    """``entry`` (a script), ``module`` or ``task``."""
    target: str
    processes_per_node: int
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    attempt: int = 1
    grace: float = 30.0
    """Seconds between SIGTERM and SIGKILL."""
    start_timeout: float = 600.0
    """Seconds in which all nodes must connect and all workers must join."""
    code: str = "."
    """Folder of the code; relative to the spec file."""
    version: int = 1

    @classmethod
    def load(cls, path: str) -> LaunchSpec:
        """Read a spec file. Raises LaunchError if it is missing, broken, or of a version unknown here."""
        try:
            with open(path, encoding="utf-8") as file:
                data = json.load(file)
        except (OSError, ValueError) as error:
            raise LaunchError(f"cannot read the launch spec {path}: {error}") from error
        if data.get("version") != 1:
            raise LaunchError(f"{path}: launch spec version {data.get('version')!r}, this launcher knows version 1")
        unknown = sorted(set(data) - {f.name for f in fields(cls)})
        if unknown:
            raise LaunchError(f"{path}: unknown fields {', '.join(unknown)}")
        try:
            return cls(**{**data, "args": tuple(data.get("args", ()))})
        except TypeError as error:
            raise LaunchError(f"{path}: {error}") from error
