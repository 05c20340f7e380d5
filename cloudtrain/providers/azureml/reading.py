"""Reads a command job form in which a field may have any type, or be absent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cloudtrain.providers.reading import at, section, whole
from cloudtrain.spec.problems import Path


def sections(native: Mapping[str, Any], name: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The mappings in the mapping ``name``, each with its path."""
    for key, value in section(native, name).items():
        if isinstance(value, Mapping):
            yield (name, key), value


def fits(pattern: str, value: Any) -> bool:
    """Whether the value is text that the pattern describes, all of it."""
    return isinstance(value, str) and re.fullmatch(pattern, value) is not None


def plain(word: Any) -> str:
    """A word as the vendor's loader compares it: ``PyTorch``, ``user_identity`` and ``UserIdentity`` are accepted."""
    return word.lower().replace("_", "") if isinstance(word, str) else ""


def nodes(native: Mapping[str, Any]) -> int:
    """How many nodes the form asks for: the service's own number is 1. 0 where it says no number."""
    count = at(native, "resources", "instance_count")
    if count is None:
        return 1
    return whole(native, "resources", "instance_count") or 0


def cluster(native: Mapping[str, Any]) -> str:
    """The named compute; "" for serverless."""
    name = native.get("compute")
    return name.removeprefix("azureml:") if isinstance(name, str) else ""


def is_spot(native: Mapping[str, Any]) -> bool:
    """Whether low-priority capacity is asked for."""
    return plain(at(native, "queue_settings", "job_tier")) == "spot"
