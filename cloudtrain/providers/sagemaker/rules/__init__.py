"""What CreateTrainingJob refuses though each field by itself is right, and the limits that matter most.

Needs no vendor package. Overrides may have put anything anywhere, so nothing is taken for granted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cloudtrain.providers.base import NativeProblem
from cloudtrain.providers.sagemaker.rules import channels, container, limits, machines, tags, times


def problems(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    """All that is wrong."""
    yield from limits.problems(native)
    yield from container.problems(native)
    yield from channels.problems(native)
    yield from machines.problems(native)
    yield from times.problems(native)
    yield from tags.problems(native)
