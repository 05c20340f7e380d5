"""Reads a request that may have any form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def at(value: Any, *steps: str) -> Any:
    """What stands below ``value``; None where there is nothing."""
    for step in steps:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def whole(value: Any, *steps: str) -> int | None:
    """A whole number; None for anything else."""
    found = at(value, *steps)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def text(value: Any, *steps: str) -> str:
    """A text; "" for anything else."""
    found = at(value, *steps)
    return found if isinstance(found, str) else ""


def mappings(value: Any, *steps: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The items of a list that are mappings, with their numbers."""
    found = at(value, *steps)
    if isinstance(found, list):
        yield from ((number, item) for number, item in enumerate(found) if isinstance(item, Mapping))
