"""``overrides``: native fields of the job file, merged into the request last.

A mapping is merged key by key, anything else (a list, too) replaces what is there; null takes out what is there. A
mapping over a list changes items of it: the keys are their numbers from 0, or ``*`` for every item.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cloudtrain.providers.base import refuse

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.spec.fields import Provider
    from cloudtrain.spec.problems import Path

Found = tuple["Path", str]
Ownership = Callable[[Mapping[str, Any], Mapping[str, Any]], Iterable[Found]]
"""What a merged request lost of the one that was made: a run could not be found, started or continued without it."""

EVERY = "*"


def overridden(job: Job, provider: Provider, made: Mapping[str, Any], owned: Ownership) -> dict[str, Any]:
    """A copy of the request with the job's overrides laid over it.

    Raises JobFileError for items of lists that are not there, and for what ``owned`` finds.
    """
    found: list[Found] = []
    overrides = job.overrides.get(provider, {})
    merged = _merged(made, overrides, ("overrides", provider), found)
    if overrides and not found:
        found += owned(made, merged)
    refuse(job, found)
    return merged


def _merged(below: Mapping[str, Any], over: Mapping[str, Any], path: Path, found: list[Found]) -> dict[str, Any]:
    merged: dict[str, Any] = {key: copy.deepcopy(value) for key, value in below.items()}
    for key, value in over.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _laid_over(merged.get(key), value, (*path, key), found)
    return merged


def _laid_over(below: Any, value: Any, path: Path, found: list[Found]) -> Any:
    if isinstance(value, Mapping) and isinstance(below, dict):
        return _merged(below, value, path, found)
    if isinstance(value, Mapping) and isinstance(below, list):
        return _items_changed(below, value, path, found)
    return _plain(value)


def _items_changed(items: list[Any], over: Mapping[str, Any], path: Path, found: list[Found]) -> list[Any]:
    changed = dict(enumerate(items))
    for key, value in over.items():
        numbers = _numbers(key, len(items))
        if not numbers:
            there = f"0 to {len(items) - 1}" if items else "none"
            found.append(((*path, key), f"is no item of that list ({there}); write its number, or * for every item"))
        for number in numbers:
            if value is None:
                changed.pop(number, None)
            elif number in changed:
                changed[number] = _laid_over(changed[number], value, (*path, key), found)
    return list(changed.values())


def _numbers(key: str, length: int) -> Iterable[int]:
    if key == EVERY:
        return range(length)
    return (int(key),) if key.isascii() and key.isdecimal() and int(key) < length else ()


def _plain(value: Any) -> Any:
    """A deep copy of plain dicts and lists, without what null took out."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
