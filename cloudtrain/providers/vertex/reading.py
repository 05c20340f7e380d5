"""Looks into a CustomJob that may hold anything: JSON's forms of protobuf's values, and our own variables in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cloudtrain.providers.reading import at, entries, text


def int64(value: Any, *path: str) -> int | None:
    """The whole number there, as JSON has it: a number (5.0 is 5), or an int64 as text. None for anything else."""
    found = at(value, *path)
    if isinstance(found, float) and found.is_integer():
        return int(found)
    if isinstance(found, str):
        return int(found) if re.fullmatch(r"-?[0-9]{1,19}", found) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def seconds(value: Any, *path: str) -> float | None:
    """The Duration there; None for anything else."""
    found = text(value, *path)
    return float(found[:-1]) if re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,9})?s", found) else None


def named(value: Any, names: Mapping[int, str], *path: str) -> str:
    """The name of the enum value there, which may be given by its number."""
    found = at(value, *path)
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
