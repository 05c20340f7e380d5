"""``overrides``: native fields of the job file, merged into the request last."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from cloudtrain.errors import SpecError

EVERY = "*"


def overridden(native: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the request with the overrides laid over it; null takes a field out.

    A mapping is merged key by key, anything else (a list, too) replaces what is there. A mapping over a list changes
    items of it: the keys are their numbers from 0, or ``*`` for every item. Raises SpecError for an item that is not
    there.
    """
    return _merged(native, overrides, ())


def _merged(below: Mapping[str, Any], over: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    merged: dict[str, Any] = {key: copy.deepcopy(value) for key, value in below.items()}
    for key, value in over.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _laid_over(merged.get(key), value, (*path, key))
    return merged


def _laid_over(below: Any, value: Any, path: tuple[str, ...]) -> Any:
    if isinstance(value, Mapping) and isinstance(below, dict):
        return _merged(below, value, path)
    if isinstance(value, Mapping) and isinstance(below, list):
        return _items_changed(below, value, path)
    return _plain(value)


def _items_changed(items: list[Any], over: Mapping[str, Any], path: tuple[str, ...]) -> list[Any]:
    changed = list(items)
    for key, value in over.items():
        for number in _numbers(key, len(items), path):
            changed[number] = _laid_over(changed[number], value, (*path, str(number)))
    return changed


def _numbers(key: str, length: int, path: tuple[str, ...]) -> Iterable[int]:
    if key == EVERY:
        return range(length)
    if not (key.isascii() and key.isdecimal() and int(key) < length):
        items = f"0 to {length - 1}" if length else "none"
        raise SpecError(
            f"overrides: {'.'.join(path)} is a list; {key!r} is none of its items ({items})",
            hint="write the number of an item, * for every item, or a whole list to replace it",
        )
    return (int(key),)


def _plain(value: Any) -> Any:
    """A deep copy of plain dicts and lists, without what null took out."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
