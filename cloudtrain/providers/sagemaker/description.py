"""What the service says of a training job, as a Description."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from cloudtrain.providers.nodes import FINGERPRINT
from cloudtrain.providers.port import Description
from cloudtrain.providers.reading import at, mappings, text, whole
from cloudtrain.providers.sagemaker.account import partition_of
from cloudtrain.providers.sagemaker.names import run_of
from cloudtrain.providers.sagemaker.said import said
from cloudtrain.providers.sagemaker.states import cause_of, restarts_of, state_of, words_of
from cloudtrain.record.state import State

_CONSOLES = {
    "aws": "https://{region}.console.aws.amazon.com",
    "aws-cn": "https://{region}.console.amazonaws.cn",
    "aws-us-gov": "https://{region}.console.amazonaws-us-gov.com",
}


def described(found: Mapping[str, Any], region: str) -> Description:
    """From the answer to DescribeTrainingJob. Any of its fields may be missing."""
    status, secondary = text(found, "TrainingJobStatus"), text(found, "SecondaryStatus")
    state, began = state_of(status, secondary), _seconds(found, "TrainingStartTime")
    reason = said(text(found, "FailureReason"))
    environment = at(found, "Environment")
    return _summary(found, region)._replace(
        reason=reason or _message(found, state),
        cause=cause_of(state, reason, began=began is not None),
        run_id=text(environment, "CLOUDTRAIN_RUN_ID"),
        attempt=_attempt(text(environment, "CLOUDTRAIN_ATTEMPT")),
        fingerprint=text(environment, FINGERPRINT),
        started=began,
        restarts=restarts_of(text(item, "Status") for _, item in mappings(found, "SecondaryStatusTransitions")),
        nodes=_nodes(found),
        policy=text(environment, "CLOUDTRAIN_POLICY"),
    )


def summarized(found: Mapping[str, Any], region: str) -> Description:
    """From an entry of ListTrainingJobs, which has neither the variables nor the reason: the name says what run."""
    run_id, attempt = run_of(text(found, "TrainingJobName")) or ("", 1)
    return _summary(found, region)._replace(run_id=run_id, attempt=attempt)


def accepted(native: Mapping[str, Any], region: str) -> Description:
    """A job that has just been created; the service has not said more of it than that."""
    name, environment = text(native, "TrainingJobName"), at(native, "Environment")
    return Description(
        provider="sagemaker",
        native_id=name,
        name=name,
        state=State.PENDING,
        vendor_state="",
        run_id=text(environment, "CLOUDTRAIN_RUN_ID"),
        attempt=_attempt(text(environment, "CLOUDTRAIN_ATTEMPT")),
        fingerprint=text(environment, FINGERPRINT),
        url=_url(name, region),
        nodes=_nodes(native),
        policy=text(environment, "CLOUDTRAIN_POLICY"),
    )


def _summary(found: Mapping[str, Any], region: str) -> Description:
    """What an entry of a list and a whole description have both."""
    name = text(found, "TrainingJobName")
    status, secondary = text(found, "TrainingJobStatus"), text(found, "SecondaryStatus")
    state = state_of(status, secondary)
    ended = _seconds(found, "TrainingEndTime")
    if state.is_final and ended is None:  # it failed before its containers ran
        ended = _seconds(found, "LastModifiedTime")
    return Description(
        provider="sagemaker",
        native_id=name,
        name=name,
        state=state,
        vendor_state=said(words_of(status, secondary)),
        created=_seconds(found, "CreationTime"),
        ended=ended if state.is_final else None,
        url=_url(name, region),
    )


def _message(found: Mapping[str, Any], state: State) -> str:
    """What the service says of the step it is in: that it waits for machines, or why it has stopped. Of a job that
    runs, or did well, there is nothing to say."""
    if state in (State.RUNNING, State.SUCCEEDED):
        return ""
    steps = [item for _, item in mappings(found, "SecondaryStatusTransitions")]
    return said(text(steps[-1], "StatusMessage")) if steps else ""


def _seconds(found: Mapping[str, Any], name: str) -> float | None:
    value = at(found, name)
    return value.timestamp() if isinstance(value, datetime) else None


def _attempt(given: str) -> int:
    return int(given) if given.isascii() and given.isdigit() and len(given) < 9 else 1


def _nodes(found: Mapping[str, Any]) -> int:
    """Of several preferences the one that was taken; of groups all."""
    resources = at(found, "ResourceConfig")
    groups = sum(whole(group, "InstanceCount") or 0 for _, group in mappings(resources, "InstanceGroups"))
    return groups or whole(resources, "SelectedInstanceCount") or whole(resources, "InstanceCount") or 0


def _url(name: str, region: str) -> str:
    console = _CONSOLES.get(partition_of(region))
    return f"{console.format(region=region)}/sagemaker/home?region={region}#/jobs/{name}" if console and name else ""
