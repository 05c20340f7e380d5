"""Looking into a request that may hold anything: overrides are free, and the schema check is another's work.

Each function gives the value at a path if it has the right kind, otherwise an empty one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


def value(holder: Any, *path: str) -> Any:
    """What stands there; None if nothing does."""
    for step in path:
        holder = holder.get(step) if isinstance(holder, Mapping) else None
    return holder


def section(holder: Any, *path: str) -> Mapping[str, Any]:
    """The mapping there."""
    found = value(holder, *path)
    return found if isinstance(found, Mapping) else {}


def entries(holder: Any, *path: str) -> list[Any]:
    """The list there."""
    found = value(holder, *path)
    return list(found) if isinstance(found, (list, tuple)) else []


def text(holder: Any, *path: str) -> str:
    """The text there."""
    found = value(holder, *path)
    return found if isinstance(found, str) else ""


def whole(holder: Any, *path: str) -> int | None:
    """The whole number there, as JSON has it: as a number, or an int64 as text."""
    found = value(holder, *path)
    if isinstance(found, str):
        return int(found) if re.fullmatch(r"-?[0-9]{1,19}", found) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def seconds(holder: Any, *path: str) -> float | None:
    """The Duration there."""
    found = text(holder, *path)
    return float(found[:-1]) if re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,9})?s", found) else None


def named(holder: Any, names: Mapping[int, str], *path: str) -> str:
    """The name of the enum value there, which may be given by its number."""
    found = value(holder, *path)
    if isinstance(found, int) and not isinstance(found, bool):
        return names.get(found, "")
    return found if isinstance(found, str) else ""


def environment(pool: Any) -> dict[str, str]:
    """Name -> value of a pool's variables."""
    return {text(item, "name"): text(item, "value") for item in entries(pool, "containerSpec", "env")}


def region_of(native: Any) -> str:
    """The region the request says it is for: a CustomJob has no field for it, but our variables do. "" if unknown."""
    from cloudtrain.providers.vertex.environment import REGION

    found = (environment(pool).get(REGION) for pool in entries(native, "jobSpec", "workerPoolSpecs"))
    return next((region for region in found if region), "")
