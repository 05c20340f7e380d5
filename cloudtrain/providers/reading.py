"""Looks into a request that may hold anything: overrides are free, and judging types is the schema check's work.

Each function gives what stands at a path if it has the right kind, otherwise an empty one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def at(value: Any, *path: str) -> Any:
    """What stands there; None where nothing does."""
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def section(value: Any, *path: str) -> Mapping[str, Any]:
    """The mapping there."""
    found = at(value, *path)
    return found if isinstance(found, Mapping) else {}


def entries(value: Any, *path: str) -> list[Any]:
    """The list there."""
    found = at(value, *path)
    return list(found) if isinstance(found, (list, tuple)) else []


def mappings(value: Any, *path: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The items of the list there that are mappings, with their numbers."""
    yield from ((number, item) for number, item in enumerate(entries(value, *path)) if isinstance(item, Mapping))


def text(value: Any, *path: str) -> str:
    """The text there."""
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def whole(value: Any, *path: str) -> int | None:
    """The whole number there; None for anything else."""
    found = at(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None
