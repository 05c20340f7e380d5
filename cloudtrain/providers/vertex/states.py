"""From a CustomJob, as the service describes it, to the neutral description. Pure.

Messages of jobs that have failed are matched as Google's page on the training service words them; what the service says
of time limits and images is not documented, so there the words are what such messages have in common.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from cloudtrain.providers.nodes import FINGERPRINT
from cloudtrain.providers.port import Cause, Description
from cloudtrain.providers.reading import entries, text, whole
from cloudtrain.providers.vertex.calls import CAPACITY, QUOTA
from cloudtrain.providers.vertex.errors import clean
from cloudtrain.providers.vertex.expansion import expanded
from cloudtrain.providers.vertex.labels import OURS
from cloudtrain.providers.vertex.reading import environment, int64, seconds
from cloudtrain.record.state import State

_PREFIX = "JOB_STATE_"
STATES: Mapping[str, State] = {
    "QUEUED": State.PENDING,
    "PENDING": State.PROVISIONING,
    "RUNNING": State.RUNNING,
    "UPDATING": State.RUNNING,
    "SUCCEEDED": State.SUCCEEDED,
    "FAILED": State.FAILED,
    "CANCELLING": State.STOPPING,
    "CANCELLED": State.STOPPED,
    "EXPIRED": State.FAILED,
    "PARTIALLY_SUCCEEDED": State.FAILED,
}
"""PENDING is: machines are being started. PAUSED, and what the service may add, is unknown and goes on."""
_BEFORE_THE_START = ("QUEUED", "PENDING")

_WORDS: tuple[tuple[Cause, str], ...] = (
    ("image", r"pull\w* .*image|imagepull|manifest unknown|image .*(not found|does not exist)|starterror"),
    ("preempted", r"pre-?empt"),
    ("user-code", r"exited with a non-zero status|ran out[ -]of[ -]memory"),
    ("quota", QUOTA.pattern),
    ("capacity", CAPACITY.pattern),
    ("timeout", r"timed?[ -]?out|deadline exceeded|(exceeded|reached) (the |its )?(max\w* )?run(ning)?[ -]?time"),
    ("node-lost", r"(node|worker|replica|vm|instance)\b.*\b(lost|evicted|unreachable|not ready|disappeared)"),
    ("infrastructure", r"internal error"),
    ("permission", r"permission|access denied|forbidden"),
    ("data", r"bucket|gs://"),
)
"""The first that fits."""
_CAUSE_OF_CODE: Mapping[int, Cause] = {3: "invalid", 4: "timeout", 7: "permission", 8: "quota", 13: "infrastructure"}
"""google.rpc.Code, for messages that say nothing known."""
_NOT_OF_TIME: tuple[Cause, ...] = ("image", "quota", "capacity", "preempted")
"""Causes that are known whatever time has gone by: the span from start to end holds the waits between two starts."""
_CONSOLE = "https://console.cloud.google.com/agent-platform/locations/{location}/training/{number}?project={project}"
"""As google-cloud-aiplatform 2.7 makes it."""
_NAME = re.compile(r"projects/[^/]+/locations/([^/]+)/customJobs/([^/]+)")


EXPLAINED_SECONDS = 90.0
"""After the end of a job that failed its error is there: about a minute, says Google's page on the training service."""


def described(job: Mapping[str, Any], project: str, now: float, said: str = "") -> Description:
    """What is known of a job at ``now``, in seconds since the epoch. It may be one that cloudtrain has not made.

    The end of a job that has failed just now is not settled until the service says why: only that tells a preemption
    from a failure. ``said``: what its log says of the failure, which counts if that is known to be a cause.
    """
    known = _described(job, project)
    if known.vendor_state != "FAILED" or text(job, "error", "message") or known.ended is None:
        return known
    if said and (explained := _described({**job, "error": {"message": said}}, project)).cause:
        return explained
    if abs(now - known.ended) >= EXPLAINED_SECONDS:
        return known
    return known._replace(reason=known.reason or "the service has not said yet why", settled=False)


def _described(job: Mapping[str, Any], project: str) -> Description:
    ours = our_variables(job)
    word = text(job, "state").removeprefix(_PREFIX) or str(job.get("state") or "UNSPECIFIED")
    state, cause = _state_and_cause(job, word)
    return Description(
        provider="vertex",
        native_id=text(job, "name"),
        name=text(job, "displayName"),
        state=state,
        vendor_state=clean(word),
        reason=_reason(job),
        cause=cause,
        run_id=ours.get("CLOUDTRAIN_RUN_ID") or text(job, "labels", f"{OURS}run"),
        attempt=_attempt(ours.get("CLOUDTRAIN_ATTEMPT") or text(job, "labels", f"{OURS}attempt")),
        fingerprint=ours.get(FINGERPRINT, ""),
        created=moment(job, "createTime"),
        started=moment(job, "startTime"),
        ended=moment(job, "endTime"),
        url=_url(text(job, "name"), project),
        nodes=sum(pool_sizes(job)),
        policy=ours.get("CLOUDTRAIN_POLICY", ""),
    )


def our_variables(job: Mapping[str, Any]) -> dict[str, str]:
    """The container's variables in the first pool, as the container finds them."""
    pools = entries(job, "jobSpec", "workerPoolSpecs")
    return {name: expanded(value, {}) for name, value in environment(pools[0]).items()} if pools else {}


def pool_sizes(job: Mapping[str, Any]) -> tuple[int, ...]:
    """Replicas of each pool."""
    return tuple(int64(pool, "replicaCount") or 0 for pool in entries(job, "jobSpec", "workerPoolSpecs"))


def moment(job: Mapping[str, Any], field: str) -> float | None:
    """A time of the job, in seconds since the epoch."""
    found = re.fullmatch(r"(.{19})(\.[0-9]{1,9})?Z", text(job, field))
    if found is None:
        return None
    try:
        whole_seconds = datetime.fromisoformat(f"{found.group(1)}+00:00").timestamp()
    except ValueError:
        return None
    return whole_seconds + float(found.group(2) or 0)


def _state_and_cause(job: Mapping[str, Any], word: str) -> tuple[State, Cause]:
    state = STATES.get(word, State.UNKNOWN)
    if word in _BEFORE_THE_START and moment(job, "startTime") is not None:
        return State.RESTARTING, ""  # it has run, and lost its machines
    if state not in (State.FAILED, State.STOPPED):
        return state, ""
    cause = _cause(job)
    if (_has_run_out(job) and cause not in _NOT_OF_TIME) or (cause == "timeout" and word != "EXPIRED"):
        return State.TIMED_OUT, "timeout"
    if state is State.STOPPED:
        return state, ""
    if cause == "capacity" and _was_preempted(job):
        cause = "preempted"
    if word == "EXPIRED" and moment(job, "startTime") is None:
        cause = "capacity"  # what it waited for has not come in time
    return (State.PREEMPTED if cause == "preempted" else state), cause


def _reason(job: Mapping[str, Any]) -> str:
    found = clean(text(job, "error", "message"))
    if not found and _has_run_out(job):
        return f"its time was over: {text(job, 'jobSpec', 'scheduling', 'timeout')}"
    return found


def _cause(job: Mapping[str, Any]) -> Cause:
    message = text(job, "error", "message")
    for cause, words in _WORDS:
        if re.search(words, message, re.IGNORECASE):
            return cause
    return _CAUSE_OF_CODE.get(whole(job, "error", "code") or 0, "")


def _has_run_out(job: Mapping[str, Any]) -> bool:
    """Whether it ended when its time was over. Which state and message that gives is not documented."""
    limit = seconds(job, "jobSpec", "scheduling", "timeout")
    started, ended = moment(job, "startTime"), moment(job, "endTime")
    return limit is not None and started is not None and ended is not None and ended - started >= limit


def _was_preempted(job: Mapping[str, Any]) -> bool:
    """Spot machines that are taken away, and not given back in six tries, end a job with the message of a stockout."""
    return text(job, "jobSpec", "scheduling", "strategy") == "SPOT" and moment(job, "startTime") is not None


def _attempt(given: str) -> int:
    return int(given) if re.fullmatch(r"[0-9]{1,6}", given) else 1


def _url(name: str, project: str) -> str:
    found = _NAME.fullmatch(name)
    if found is None:
        return ""
    location, number = (quote(part, safe="") for part in found.groups())
    return _CONSOLE.format(location=location, number=number, project=quote(project, safe=":"))
