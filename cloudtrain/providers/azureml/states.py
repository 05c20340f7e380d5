"""What Azure ML's words for a job's state and for its end mean.

The states are those of the service's enumeration (read in azure-ai-ml 1.35.2: JobStatus). How ends are worded is only
known from public reports, so what is not recognised stays as it is: FAILED or STOPPED, with the service's own text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from cloudtrain.providers.port import Cause
from cloudtrain.record.state import State

_STATES: Mapping[str, State] = {
    "NotStarted": State.PENDING,
    "Queued": State.PENDING,
    "Starting": State.PROVISIONING,
    "Provisioning": State.PROVISIONING,
    "Preparing": State.PROVISIONING,
    "Running": State.RUNNING,
    "Finalizing": State.RUNNING,
    "CancelRequested": State.STOPPING,
    "Completed": State.SUCCEEDED,
    "Failed": State.FAILED,
    "Canceled": State.STOPPED,
}
"""NotResponding and Paused are left out on purpose: a job may come back from both, so they are not ends."""

_LIMIT = r"tim(ed|e) ?-?out|time limit|max\w* ?run ?duration|exceeded .*(time|duration)"
_USER_CODE = r"user process .*exited with status|execution failed\. user process"
_CAUSES: tuple[tuple[str, Cause], ...] = (
    (_USER_CODE, "user-code"),  # first: behind it comes what the user's program printed, whatever that says
    (r"\bpre-?empt|\bevict", "preempted"),
    (r"quota", "quota"),
    (r"capacity|allocation ?failed|sku ?not ?available|insufficient (resources|nodes)", "capacity"),
    (r"image ?build|(docker|container)? ?image\b.*(pull|not found|does not exist|manifest|unauthorized)|"
     r"(pull|find|build)\w*\b.*\bimage\b|environment image", "image"),
    (r"mount|data-?capability|datastore|stream ?access|dataset", "data"),
    (r"authoriz|authenticat|forbidden|permission|access ?denied|not have access", "permission"),
    (r"\bnode\b.*(unreachable|unusable|lost|not respond|unhealthy|failed)|lost (connection|contact)|heartbeat",
     "node-lost"),
    (_LIMIT, "timeout"),
    (r"usererror", "user-code"),
    (r"serviceerror|systemerror|internal ?server ?error", "infrastructure"),
)  # fmt: skip
"""What the codes and the message of a failure hold, in small letters; the first that fits is it."""

_DURATION = r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"


def state_of(word: str) -> State:
    """The state that a word of the service's stands for; UNKNOWN for one that it has not got today."""
    return _STATES.get(word, State.UNKNOWN)


def ended(state: State, text: str, *, ran: float | None, limit: float | None) -> tuple[State, Cause]:
    """How a job ended, and why. ``text``: codes and message of its error, "" if it has none.

    The service cancels a job that reaches its limit, so the end looks like a cancellation: it is told from one by the
    text, or by the job having run for its limit. ``ran``, ``limit``: seconds, None where unknown.
    """
    words = text.lower()
    if state is State.STOPPED:
        over = limit is not None and ran is not None and ran >= limit
        return (State.TIMED_OUT, "timeout") if over or re.search(_LIMIT, words) else (state, "")
    if state is not State.FAILED:
        return state, ""
    cause: Cause = next((cause for pattern, cause in _CAUSES if re.search(pattern, words)), "")
    return (State.PREEMPTED if cause == "preempted" else state), cause


def seconds_of(duration: str) -> float | None:
    """An ISO 8601 duration as the service writes it: ``PT1H30M``, ``P1DT2H``, ``PT90S``; None for anything else."""
    found = re.fullmatch(_DURATION, duration)
    if not found or not any(found.groups()):
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return days * 86_400 + hours * 3600 + minutes * 60 + seconds
