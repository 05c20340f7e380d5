"""Rules of ``scheduling``: which strategy goes with which machines, limits and switches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cloudtrain.providers.base import NativeProblem
from cloudtrain.providers.reading import at, entries, section, text
from cloudtrain.providers.vertex.reading import named, seconds
from cloudtrain.providers.vertex.rules.pools import ACCELERATORS, AFFINITIES, REDUCTION_SERVER
from cloudtrain.spec.problems import Path

STRATEGIES: Mapping[int, str] = {1: "ON_DEMAND", 2: "LOW_COST", 3: "STANDARD", 4: "SPOT", 6: "FLEX_START"}
_INSTEAD = {"ON_DEMAND": "STANDARD", "LOW_COST": "SPOT"}
_FLEX_ACCELERATORS = (
    "NVIDIA_L4", "NVIDIA_TESLA_A100", "NVIDIA_A100_80GB", "NVIDIA_H100_80GB", "NVIDIA_H100_MEGA_80GB",
    "NVIDIA_H200_141GB", "NVIDIA_B200",
)  # fmt: skip
_FLEX_DAYS = 7
_NO_REDUCTION = ("a3-", "a4-", "a4x-")

_PATH: Path = ("jobSpec", "scheduling")


def scheduling_problems(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    """All that is wrong with the scheduling."""
    scheduling = section(native, "jobSpec", "scheduling")
    strategy = named(scheduling, STRATEGIES, "strategy")
    yield from _limit_problems(scheduling, strategy)
    if strategy in _INSTEAD:
        yield NativeProblem((*_PATH, "strategy"), f"{strategy} is deprecated: write {_INSTEAD[strategy]}")
    if at(scheduling, "disableRetries") is True and at(scheduling, "restartJobOnWorkerRestart") is True:
        text_ = "cannot be true beside disableRetries, which forces it to false; retries.preemption: 0 sets both right"
        yield NativeProblem((*_PATH, "restartJobOnWorkerRestart"), text_)
    pools = list(_pools(native))
    if strategy == "FLEX_START":
        yield from _flex_problems(native, scheduling, pools)
    if strategy == "SPOT":
        for path, pool in pools:
            if _accelerator(pool).startswith("TPU_"):
                yield NativeProblem((*path, "machineSpec", "acceleratorType"), "TPUs are not offered as SPOT")
    yield from _reduction_problems(pools)


def _limit_problems(scheduling: Mapping[str, Any], strategy: str) -> Iterator[NativeProblem]:
    timeout = seconds(scheduling, "timeout")
    if at(scheduling, "timeout") is None:
        yield NativeProblem((*_PATH, "timeout"), "is missing: the job would run for up to 7 days")
    elif timeout is None or timeout <= 0:
        yield NativeProblem((*_PATH, "timeout"), f"must be seconds such as '3600s', not {scheduling['timeout']!r}")
    if strategy != "FLEX_START" and at(scheduling, "maxWaitDuration") is not None:
        text_ = "is for strategy FLEX_START alone: leave it out"
        yield NativeProblem((*_PATH, "maxWaitDuration"), text_)


def _flex_problems(
    native: Mapping[str, Any], scheduling: Mapping[str, Any], pools: list[tuple[Path, Any]]
) -> Iterator[NativeProblem]:
    if (seconds(scheduling, "timeout") or 0) > _FLEX_DAYS * 86_400:
        yield NativeProblem((*_PATH, "timeout"), f"is {scheduling['timeout']}; FLEX_START allows {_FLEX_DAYS} days")
    if text(native, "jobSpec", "persistentResourceId"):
        yield NativeProblem(("jobSpec", "persistentResourceId"), "cannot stand beside strategy FLEX_START")
    for path, pool in pools:
        accelerator = _accelerator(pool)
        if accelerator not in _FLEX_ACCELERATORS:
            offered = ", ".join(_FLEX_ACCELERATORS)
            problem = f"{accelerator or 'no accelerator'}: FLEX_START is offered for {offered}"
            yield NativeProblem((*path, "machineSpec", "acceleratorType"), problem)
        if _affinity(pool) in ("ANY_RESERVATION", "SPECIFIC_RESERVATION"):
            place = (*path, "machineSpec", "reservationAffinity")
            yield NativeProblem(place, "cannot stand beside strategy FLEX_START, which takes no reservation")
        if "vertex-ai-restricted" in text(pool, "containerSpec", "imageUri"):
            yield NativeProblem((*path, "containerSpec", "imageUri"), "restricted images do not run with FLEX_START")
    for path, pool in pools[1:]:
        if section(pool, "machineSpec") != section(pools[0][1], "machineSpec"):
            yield NativeProblem(
                (*path, "machineSpec"), "differs from pool 0's; FLEX_START wants the same in every pool"
            )


def _reduction_problems(pools: list[tuple[Path, Any]]) -> Iterator[NativeProblem]:
    reducer = next((path for path, pool in pools if REDUCTION_SERVER in text(pool, "containerSpec", "imageUri")), None)
    machine = text(pools[0][1], "machineSpec", "machineType") if pools else ""
    if reducer and machine.startswith(_NO_REDUCTION):
        yield NativeProblem(reducer, f"is a Reduction Server, which is not documented to work with {machine}")


def _pools(native: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """The pools that are not empty."""
    for number, pool in enumerate(entries(native, "jobSpec", "workerPoolSpecs")):
        if pool:
            yield ("jobSpec", "workerPoolSpecs", number), pool


def _accelerator(pool: Any) -> str:
    return named(pool, ACCELERATORS, "machineSpec", "acceleratorType")


def _affinity(pool: Any) -> str:
    return named(pool, AFFINITIES, "machineSpec", "reservationAffinity", "reservationAffinityType")
