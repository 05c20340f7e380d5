"""What Azure ML would refuse in a command job form, as far as it can be known without asking it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cloudtrain.providers.azureml import rules, schema
from cloudtrain.providers.base import NativeCheck, NativeProblem
from cloudtrain.providers.registry import EXTRAS
from cloudtrain.providers.vendor import skipped
from cloudtrain.spec.problems import Path


def check(native: Mapping[str, Any]) -> NativeCheck:
    """Our rules, which say what would be right, then what the vendor's loader has to say beyond them."""
    ruled = rules.problems(native)
    try:
        loader = schema.problems(native)
    except ImportError as error:
        return NativeCheck(ruled, skipped(error, "azure-ai-ml", "the vendor's own loader", EXTRAS["azureml"]))
    if not loader:  # fields that a newer version of the form has
        return NativeCheck(tuple(found for found in ruled if not found.unknown))
    return NativeCheck((*ruled, *_unsaid(loader, ruled)))


def _unsaid(found: Iterable[NativeProblem], said: Iterable[NativeProblem]) -> Iterable[NativeProblem]:
    """Without those at a place, above or below one, of which something has been said. A wrong type says all of its
    section: the loader judges the rest by another one."""
    places = [problem.path[:-1] if problem.path[-1:] == ("type",) else problem.path for problem in said]
    return (problem for problem in found if not any(_touch(problem.path, place) for place in places))


def _touch(one: Path, other: Path) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]
