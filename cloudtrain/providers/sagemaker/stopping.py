"""``StoppingCondition``, spot and native retries: when the service ends the job, and when it starts it again.

RetryStrategy repeats a job after an InternalServerError only, a fault of the platform: to the job that is its machine
taken away, so ``retries.preemption`` is the number. The limits count all its attempts together. A script that fails
and capacity that is not found are never repeated by the service.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cloudtrain.providers.base import Chosen

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.machine import Machine
    from cloudtrain.spec.problems import Path

DEFAULT_RUNTIME = 86_400
"""What the service takes when nothing is said; sent all the same, so that the request says when the job ends."""
LONGEST_RUNTIME = 28 * 86_400
LONGEST_WAIT = 2**31 - 1
DEFAULT_WAIT = 86_400
"""For spot capacity, on top of the runtime."""
PENDING = range(1800, 2_419_201)
MOST_RETRIES = 30


def stopping_of(job: Job, machine: Machine) -> dict[str, int]:
    """The field of the request."""
    stopping = {"MaxRuntimeInSeconds": runtime_of(job)}
    if job.spot.enabled:
        stopping["MaxWaitTimeInSeconds"] = job.spot.max_wait.seconds if job.spot.max_wait else _default_wait(job)
    if _pending_is_native(job, machine):
        assert job.limits.pending is not None
        stopping["MaxPendingTimeInSeconds"] = job.limits.pending.seconds
    return stopping


def runtime_of(job: Job) -> int:
    """MaxRuntimeInSeconds."""
    return job.limits.runtime.seconds if job.limits.runtime else DEFAULT_RUNTIME


def retries_of(job: Job) -> dict[str, Any]:
    """RetryStrategy; nothing where the job wants no retries."""
    attempts = min(job.retries.preemption, MOST_RETRIES)
    return {"MaximumRetryAttempts": attempts} if attempts else {}


def stopping_problems(job: Job) -> Iterator[tuple[Path, str]]:
    """Times that the service refuses."""
    runtime, wait = runtime_of(job), job.spot.max_wait
    if runtime > LONGEST_RUNTIME:
        yield ("limits", "runtime"), f"{job.limits.runtime} is {runtime} s; SageMaker runs a job for at most 28d"
    if wait and job.spot.enabled and wait.seconds > LONGEST_WAIT:
        yield ("spot", "max_wait"), f"{wait} is {wait.seconds} s, at most {LONGEST_WAIT} s can be sent"
    if wait and job.spot.enabled and wait.seconds < runtime:
        runtime_text = job.limits.runtime or f"{DEFAULT_RUNTIME} s, the default"
        text = f"{wait} counts waiting and running, so it must be at least limits.runtime ({runtime_text})"
        yield ("spot", "max_wait"), text


def stopping_chosen(job: Job) -> Iterator[Chosen]:
    """Times that the job leaves open."""
    if job.limits.runtime is None:
        yield Chosen("limits.runtime", "1d", "SageMaker's own default; at most 28d")
    if job.spot.enabled and job.spot.max_wait is None:
        reason = "the runtime, and a day of waiting for spot capacity"
        yield Chosen("spot.max_wait", f"{_default_wait(job)}s", reason)


def stopping_notes(job: Job, machine: Machine) -> Iterator[str]:
    """Limits that are not the service's to keep."""
    pending = job.limits.pending
    if pending and not _pending_is_native(job, machine):
        if pending.seconds not in PENDING:
            why = f"SageMaker takes {PENDING[0]} s to {PENDING[-1]} s"
        else:
            why = f"SageMaker keeps it for types with accelerators only, not for {machine.name}"
        yield f"limits.pending: not kept yet, by nobody ({why})"
    if job.retries.preemption > MOST_RETRIES:
        yield f"retries.preemption: SageMaker itself retries at most {MOST_RETRIES} times, the rest is not kept yet"
    if job.spot.enabled and "preemption" in job.given().get("retries", {}):
        yield (
            "retries.preemption: counts faults of the platform; an interrupted spot job is started again by SageMaker "
            "itself, however often, until MaxWaitTimeInSeconds"
        )


def _default_wait(job: Job) -> int:
    return runtime_of(job) + DEFAULT_WAIT


def _pending_is_native(job: Job, machine: Machine) -> bool:
    """The service keeps it for accelerated types, within its bounds."""
    accelerated = machine.instance is not None and machine.instance.accelerators > 0
    return job.limits.pending is not None and job.limits.pending.seconds in PENDING and accelerated
