"""``overrides``: native fields of the job file, merged into the request last."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any


def overridden(native: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the request with the overrides laid over it: mappings key by key, anything else (lists too) as a whole.

    null takes a field out.
    """
    merged: dict[str, Any] = {key: copy.deepcopy(value) for key, value in native.items()}
    for key, value in overrides.items():
        below = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(below, dict) and isinstance(value, Mapping):
            merged[key] = overridden(below, value)
        else:
            merged[key] = _plain(value)
    return merged


def _plain(value: Any) -> Any:
    """A deep copy of plain dicts and lists, without what null took out."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
