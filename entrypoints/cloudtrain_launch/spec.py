"""What to run: the job as plain data in a JSON file that travels with the code. The same for every node and rank."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Callable

from cloudtrain_launch.errors import LaunchError

KINDS = ("entry", "module", "task")


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
    framework: str = "pytorch"
    attempt: int = 1
    grace: float = 30.0
    """Seconds between SIGTERM and SIGKILL."""
    start_timeout: float = 600.0
    """Seconds in which all nodes must connect and all workers must join."""
    silence: float = 30.0
    """Seconds after which a node that says nothing is lost, though its connection is not closed. Launchers say
    something every 2 s."""
    code: str = "."
    """Folder of the code; relative to the spec file. Not looked at where the code comes as an archive."""
    nodes: int = 0
    """How many nodes the job has; 0 where the spec does not say."""
    requirements: str = ""
    """A requirements file within the code, to be installed on every node first."""
    channels: dict[str, dict[str, str]] = field(default_factory=dict)
    """Data channel -> ``mode`` (mount or download) and ``shard`` (replicate or by-object), where the provider leaves
    that to the launcher."""
    version: int = 1

    @classmethod
    def load(cls, path: str, attempt: str = "") -> LaunchSpec:
        """Read a spec file. Raises LaunchError if it is missing, broken, or of a version unknown here.

        ``attempt`` is the environment's CLOUDTRAIN_ATTEMPT, which goes before the file's: attempts share the file.
        """
        try:
            with open(path, encoding="utf-8") as file:
                data = json.load(file)
        except (OSError, ValueError, RecursionError) as error:
            raise LaunchError(f"cannot read the launch spec {path}: {error}") from error
        if not isinstance(data, dict):
            raise LaunchError(f"{path}: a launch spec is a JSON object, not {type(data).__name__}")
        if data.get("version") != 1:
            raise LaunchError(f"{path}: launch spec version {data.get('version')!r}, this launcher knows version 1")
        problem = _problem(data)
        if problem:
            raise LaunchError(f"{path}: {problem}")
        if attempt:
            data["attempt"] = _attempt(attempt)
        return cls(**{**data, "args": tuple(data.get("args", ()))})


_DIGITS = 18
"""Beyond thousands of digits Python refuses to read a number at all."""


def _attempt(text: str) -> int:
    if not text.isdecimal() or len(text) > _DIGITS or int(text) < 1:
        raise LaunchError(f"CLOUDTRAIN_ATTEMPT is {text[:80]!r}, which is not a whole number from 1")
    return int(text)


def _problem(data: Mapping[str, Any]) -> str | None:
    known = {f.name: str(f.type) for f in fields(LaunchSpec)}
    unknown = sorted(set(data) - set(known))
    if unknown:
        return f"unknown fields {', '.join(unknown)}"
    missing = [name for name in ("run_id", "kind", "target", "processes_per_node") if name not in data]
    if missing:
        return f"missing fields {', '.join(missing)}"
    for name, value in data.items():
        what, fits = _SHAPES[known[name]]
        if not fits(value):
            return f"{name} must be {what}, not {value!r}"
    return None if data["kind"] in KINDS else f"kind must be one of {', '.join(KINDS)}, not {data['kind']!r}"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value < math.inf


def _are_texts(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _are_channels(values: object) -> bool:
    return isinstance(values, dict) and all(
        isinstance(channel, dict) and all(value in _CHANNEL.get(key, ()) for key, value in channel.items())
        for channel in values.values()
    )


_CHANNEL = {"mode": ("mount", "download"), "shard": ("replicate", "by-object")}

_SHAPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "str": ("text", lambda value: isinstance(value, str)),
    "int": ("a whole number from 1", lambda value: type(value) is int and value >= 1),
    "float": ("a number from 0", lambda value: _is_number(value) and value >= 0),
    "tuple[str, ...]": ("a list of texts", _are_texts),
    "dict[str, dict[str, str]]": ("channels with mode mount|download and shard replicate|by-object", _are_channels),
    "dict[str, str]": ("an object of texts", lambda value: isinstance(value, dict) and _are_texts([*value.values()])),
}
"""A field's annotation -> what it is called, and whether a value of the file is one."""
