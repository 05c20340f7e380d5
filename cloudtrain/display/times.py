"""Moments and spans of time, for people."""

from __future__ import annotations

import time

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def moment(seconds: float | None) -> str:
    """``2026-11-30 14:05:12``, in this machine's zone; ``-`` if it is not known."""
    if seconds is None:
        return "-"
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (ValueError, OverflowError, OSError):  # of a clock that is far off
        return "-"


def span(seconds: float) -> str:
    """``8 s``, ``5 min 3 s``, ``2 h 5 min``: the two biggest units."""
    left = max(0, int(seconds))
    parts: list[str] = []
    for size, name in _UNITS:
        if left >= size and len(parts) < 2:
            parts.append(f"{left // size} {name}")
        elif parts:
            break
        left %= size
    return " ".join(parts) or "0 s"
