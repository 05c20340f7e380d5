"""``scheduling``: how long the job may run, on what capacity, and what is done when a node is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.spec.problems import Path

DEFAULT_RUNTIME = "7d"
"""What the service takes when nothing is said; sent all the same, so that the request says when the job ends."""
_DEFAULT_SECONDS = 7 * 86_400
_REPEATS, _SPOT_REPEATS = 3, 6
"""How often the service itself starts a job again (Google's pages on the training service and on Spot VMs)."""
LONGEST = 315_576_000_000
"""Seconds that a protobuf Duration can hold: ten thousand years."""


def scheduling_of(job: Job) -> dict[str, Any]:
    """The field of the request.

    The service repeats a job only after a loss that is none of the script's: launch.py makes every failure of a script
    exit 1, which is final. So ``retries.failure`` is cloudtrain's to keep, and whether Vertex AI may repeat follows
    from ``retries.preemption`` alone. With repeats off, the service puts restartJobOnWorkerRestart to false by itself;
    sending true beside it would promise what does not happen.
    """
    repeats = job.retries.preemption > 0
    runtime = job.limits.runtime
    scheduling: dict[str, Any] = {"timeout": f"{runtime.seconds if runtime else _DEFAULT_SECONDS}s"}
    if repeats and job.resources.nodes > 1:
        scheduling["restartJobOnWorkerRestart"] = True
    if job.spot.enabled:
        scheduling["strategy"] = "SPOT"
    if not repeats:
        scheduling["disableRetries"] = True
    return scheduling


def repeat_notes(job: Job) -> Iterator[str]:
    """Vertex AI has a switch and no number."""
    if job.retries.preemption and "preemption" in job.given().get("retries", {}):
        times = _SPOT_REPEATS if job.spot.enabled else _REPEATS
        told = f"Vertex AI itself repeats a lost job up to {times} times, whatever the number; only 0 stops it"
        yield f"retries.preemption: {told}"


def runtime_problems(job: Job) -> Iterator[tuple[Path, str]]:
    """A duration that cannot be sent."""
    if job.limits.runtime and job.limits.runtime.seconds > LONGEST:
        yield ("limits", "runtime"), f"is {job.limits.runtime.seconds} s, at most {LONGEST} s can be sent"
