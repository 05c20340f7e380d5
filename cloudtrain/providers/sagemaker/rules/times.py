"""Spot, time limits and warm pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cloudtrain.catalog.instances import rows_of
from cloudtrain.providers.base import NativeProblem
from cloudtrain.providers.reading import at, whole
from cloudtrain.providers.sagemaker.rules.machines import types_of
from cloudtrain.providers.sagemaker.stopping import DEFAULT_RUNTIME, LONGEST_RUNTIME

_WAIT = ("StoppingCondition", "MaxWaitTimeInSeconds")
_PENDING = ("StoppingCondition", "MaxPendingTimeInSeconds")
_KEEP = ("ResourceConfig", "KeepAlivePeriodInSeconds")


def problems(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    """What times and capacity get wrong together."""
    yield from _runtime(native)
    yield from _waiting(native)
    yield from _pending(native)
    yield from _warm_pool(native)


def _runtime(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    runtime = whole(native, "StoppingCondition", "MaxRuntimeInSeconds")
    if runtime and runtime > LONGEST_RUNTIME:
        text = f"{runtime} s, at most {LONGEST_RUNTIME} (28 days)"
        yield NativeProblem(("StoppingCondition", "MaxRuntimeInSeconds"), text)


def _waiting(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    wait, spot = whole(native, *_WAIT), at(native, "EnableManagedSpotTraining") is True
    runtime = whole(native, "StoppingCondition", "MaxRuntimeInSeconds") or DEFAULT_RUNTIME
    if spot and at(native, *_WAIT) is None:
        text = f"is missing: EnableManagedSpotTraining needs it, at least MaxRuntimeInSeconds ({runtime})"
        yield NativeProblem(_WAIT, text)
    if at(native, *_WAIT) is not None and not spot:
        yield NativeProblem(_WAIT, "is accepted with EnableManagedSpotTraining alone")
    elif wait and wait < runtime:
        yield NativeProblem(_WAIT, f"{wait} s, at least MaxRuntimeInSeconds ({runtime}): it counts waiting and running")


def _pending(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    types = types_of(native)
    if at(native, *_PENDING) is not None and types and all(_is_cpu(name) for name in types):
        yield NativeProblem(_PENDING, f"has no effect on types without accelerators ({', '.join(types)}); leave it out")


def _is_cpu(name: str) -> bool:
    rows = rows_of("sagemaker", name)
    return bool(rows) and not any(row.accelerators for row in rows)


def _warm_pool(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    if not whole(native, *_KEEP):
        return
    if at(native, "EnableManagedSpotTraining") is True:
        yield NativeProblem(_KEEP, "cannot be used with EnableManagedSpotTraining: spot machines are not kept")
    if at(native, "ResourceConfig", "InstanceGroups"):
        yield NativeProblem(_KEEP, "cannot be used with InstanceGroups")
