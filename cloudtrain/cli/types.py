"""Kinds of values that several verbs take."""

from __future__ import annotations

import re
import time
from typing import Any

import click

run_argument = click.argument("run", metavar="RUN")
"""A run's id, the beginning of one, ``latest``, or the provider's own name of it; ``runs.addressing`` reads it."""
attempt_option = click.option(
    "--attempt",
    type=click.IntRange(1),
    metavar="N",
    help="Of an earlier attempt of a run that was resumed: 1 is the first.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Report as JSON.")

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Seconds(click.ParamType[float]):
    """``30``, ``30s``, ``0.5s``, ``10m``."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        seconds = _seconds(str(value))
        if seconds is None:
            self.fail(f"{value!r} is no duration; write 30s, 10m or 6h", param, ctx)
        return seconds


class Since(click.ParamType[float]):
    """``10m``: so long ago; or a time such as ``2026-11-30T14:05`` (of this machine's zone, if it names none).

    Becomes seconds since the epoch.
    """

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        text = str(value)
        seconds = _seconds(text)
        if seconds is not None:
            return time.time() - seconds
        from datetime import datetime

        try:
            # Python before 3.11 does not take the Z that every service writes.
            return datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text)).timestamp()
        except (ValueError, OverflowError, OSError):
            self.fail(f"{value!r} is neither a duration such as 10m nor a time such as 2026-11-30T14:05", param, ctx)


class Numbers(click.ParamType[frozenset[int]]):
    """``0,3``."""

    def __init__(self, name: str) -> None:
        """``name``: what they are numbers of, ``ranks``."""
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[int]:
        if isinstance(value, frozenset):
            return value
        if not re.fullmatch(r"\d{1,9}(,\d{1,9})*", str(value), re.ASCII):
            self.fail(f"{value!r} is no list of {self.name}; write 0 or 0,3", param, ctx)
        return frozenset(int(text) for text in str(value).split(","))


def _seconds(text: str) -> float | None:
    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,9})?)([smhd]?)", text, re.ASCII)
    return float(match[1]) * _UNITS[match[2]] if match else None
