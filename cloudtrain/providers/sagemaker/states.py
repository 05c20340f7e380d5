"""The service's two status words and its reason, as a neutral state and a cause.

``SecondaryStatus`` is an open set: AWS's reference says that further words may come. The first word,
``TrainingJobStatus``, alone says whether a job is over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from cloudtrain.providers.port import Cause
from cloudtrain.record.state import State

_OVER = {"Completed": State.SUCCEEDED, "Failed": State.FAILED, "Stopped": State.STOPPED}
_LIMITS = ("MaxRuntimeExceeded", "MaxWaitTimeExceeded")
"""The first word is Stopped then, as if somebody had wanted it."""
_GOING_ON = {
    "Pending": State.PENDING,
    **dict.fromkeys(
        ("Starting", "LaunchingMLInstances", "PreparingTrainingStack", "Downloading", "DownloadingTrainingImage"),
        State.PROVISIONING,
    ),
    **dict.fromkeys(("Training", "Updating", "Uploading", "Completed", "Failed"), State.RUNNING),
    **dict.fromkeys(("Interrupted", "Restarting"), State.RESTARTING),
    **dict.fromkeys(("Stopping", "Stopped", *_LIMITS), State.STOPPING),
}
_AGAIN = ("Interrupted", "Restarting")
_ENDING = ("Stopping", "Stopped", "Completed", "Failed", *_LIMITS)


def state_of(status: str, secondary: str) -> State:
    """The neutral state. What is not known is UNKNOWN, and so not over."""
    if status in _OVER:
        return State.TIMED_OUT if secondary in _LIMITS else _OVER[status]
    if status == "Stopping":
        return State.STOPPING
    return _GOING_ON.get(secondary, State.UNKNOWN) if status == "InProgress" else State.UNKNOWN


def words_of(status: str, secondary: str) -> str:
    """``InProgress/Downloading``; one word where both are the same."""
    return status if secondary in ("", status) else f"{status}/{secondary}"


def restarts_of(words: Iterable[str]) -> int:
    """How often the service has started the job anew, by the secondary words that it went through."""
    count, interrupted = 0, False
    for word in words:
        if word in _AGAIN:
            interrupted = True
        elif interrupted and word not in _ENDING:
            count, interrupted = count + 1, False
    return count


_PREFIXES: Mapping[str, Cause] = {
    "CapacityError": "capacity",
    "InsufficientCapacity": "capacity",
    "InternalServerError": "infrastructure",
    "InternalError": "infrastructure",
    "ResourceLimitExceeded": "quota",
}
_CLIENT: tuple[tuple[str, Cause], ...] = (
    (r"\b(image|ecr|manifest|registry)\b", "image"),
    (r"access ?denied|\b403\b|forbidden|not authorized|permission|assume", "permission"),
    (r"download|upload|\bs3\b|bucket|no space|disk", "data"),
)
_CONTAINER: tuple[tuple[str, Cause], ...] = (
    (r"\bnode \d+ \([^)]*\) is lost: its launcher's connection broke", "node-lost"),
    (r"did not (connect to|reach) node 0 ", "infrastructure"),
    # Without a word of the launcher's: all nodes were told to end, and nobody had asked for it.
    (r"^AlgorithmError:?[\s,]*(ExecuteUserScriptError)?[\s:,]*exit code:? 143$", "preempted"),
)


def cause_of(state: State, reason: str, *, began: bool) -> Cause:
    """Why a job ended so, by the words its ``FailureReason`` begins with. ``began``: the containers have run."""
    if state is State.TIMED_OUT:
        return "timeout"
    if state is not State.FAILED:
        return ""
    prefix = reason.partition(":")[0].strip()
    if prefix in _PREFIXES:
        return _PREFIXES[prefix]
    if prefix == "ClientError":
        return _by_words(reason, _CLIENT) or "invalid"
    # The rest are the container's own words: of the failure file, with AlgorithmError before them or without.
    return _by_words(reason, _CONTAINER) or ("user-code" if began or prefix == "AlgorithmError" else "")


def _by_words(reason: str, patterns: Iterable[tuple[str, Cause]]) -> Cause:
    return next((cause for pattern, cause in patterns if re.search(pattern, reason, re.IGNORECASE)), "")
