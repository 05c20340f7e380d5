"""What the toy's service refuses, known before it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cloudtrain.providers.base import NativeCheck, NativeProblem

_FIELDS = ("name", "nodes", "code", "variables")
MOST_NODES = 8


def check(native: Mapping[str, Any]) -> NativeCheck:
    """All of it: there is no schema of a vendor's to ask."""
    return NativeCheck(tuple(_problems(native)))


def _problems(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    for name in native:
        if name not in _FIELDS:
            yield NativeProblem((name,), f"no such field; there are {', '.join(_FIELDS)}", unknown=True)
    nodes = native.get("nodes")
    if not isinstance(nodes, int) or not 1 <= nodes <= MOST_NODES:
        yield NativeProblem(("nodes",), f"must be 1 to {MOST_NODES}, not {nodes!r}")
