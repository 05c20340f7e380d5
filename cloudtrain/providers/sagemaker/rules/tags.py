"""``Tags``: reserved and repeated keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cloudtrain.providers.base import NativeProblem
from cloudtrain.providers.reading import mappings, text
from cloudtrain.providers.sagemaker.tags import RESERVED
from cloudtrain.spec.problems import shown


def problems(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    """What is wrong with keys."""
    seen: set[str] = set()
    for number, tag in mappings(native, "Tags"):
        key = text(tag, "Key")
        if key.lower().startswith(RESERVED):
            yield NativeProblem(("Tags", number, "Key"), f"{shown(key)} begins with {RESERVED}, reserved for AWS")
        if key and key in seen:
            yield NativeProblem(("Tags", number, "Key"), f"{shown(key)} is the key of an earlier tag")
        seen.add(key)
