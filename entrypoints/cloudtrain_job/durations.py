"""Lengths of time as people write them: ``90s 10m 6h 2d``."""

from __future__ import annotations

import re

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(text: str | float) -> float:
    """``"10m"`` as seconds; a number is seconds already. Raises ValueError for anything else."""
    if isinstance(text, (int, float)):
        return float(text)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhd])\s*", text)
    if match is None:
        raise ValueError(f"{text!r} is not a length of time like 90s, 10m, 6h or 2d")
    return float(match[1]) * _SECONDS[match[2]]
