"""Kinds of values that several fields share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from cloudtrain.errors import did_you_mean
from cloudtrain.providers.base import NativeProblem
from cloudtrain.spec.problems import Path, shown


def whole(path: Path, value: Any, most: int, why: str = "") -> Iterator[NativeProblem]:
    """A whole number from 1. The client cuts 2.7 down to 2, and takes a 0 for nothing."""
    if not isinstance(value, int) or isinstance(value, bool):
        yield NativeProblem(path, f"must be a whole number, not {shown(value)}")
    elif not 1 <= value <= most:
        yield NativeProblem(path, f"is {value}; at least 1 and at most {most}{why}")


def word(path: Path, value: Any, words: Iterable[str]) -> Iterator[NativeProblem]:
    """One of a few words, as the client compares them: whatever their case."""
    known = list(words)
    if not isinstance(value, str) or value.lower() not in known:
        near = did_you_mean(value, known) if isinstance(value, str) else ""
        yield NativeProblem(path, f"must be one of {', '.join(known)}, not {shown(value)}{near}")
