"""What the service knows of one training job: the request, its state, and all that Describe tells."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from cloudtrain.emulator.sagemaker.errors import reason
from cloudtrain.providers.reading import at, entries, text, whole
from cloudtrain.providers.sagemaker.account import partition_of
from cloudtrain.providers.sagemaker.schema import shapes

FINAL = frozenset({"Completed", "Failed", "Stopped"})
_OF_REQUEST = frozenset({"TrainingJobName", "Tags"})
"""Members of the request that Describe tells in another way, or not at all."""
_POLLS_OF_UNKNOWN = 3


class State(NamedTuple):
    """Where a job is."""

    status: str
    secondary: str
    message: str
    """For people."""


STARTING = State("InProgress", "Starting", "Starting the training job")
LAUNCHING = State("InProgress", "Starting", "Preparing the instances for training")
DOWNLOADING = State("InProgress", "Downloading", "Downloading input data")
FETCHING_IMAGE = State("InProgress", "Training", "Downloading the training image")
TRAINING = State("InProgress", "Training", "Training image download completed. Training in progress.")
INTERRUPTED = State("InProgress", "Interrupted", "The managed spot training instances were interrupted")
RESTARTING = State("InProgress", "Restarting", "Restarting the training job after an internal error")
UPLOADING = State("InProgress", "Uploading", "Uploading generated training model")
COMPLETED = State("Completed", "Completed", "Training job completed")
FAILED = State("Failed", "Failed", "Training job failed")
STOPPING = State("Stopping", "Stopping", "Stopping the training job")
STOPPED = State("Stopped", "Stopped", "Training job stopped")
OVER_RUNTIME = State("Stopped", "MaxRuntimeExceeded", "Training job runtime exceeded MaxRuntimeInSeconds provided")
OVER_WAIT = State("Stopped", "MaxWaitTimeExceeded", "Training job wait time exceeded MaxWaitTimeInSeconds provided")


class Record:
    """One job. Any thread may ask; changes are seen whole."""

    def __init__(self, native: Mapping[str, Any], region: str, now: Callable[[], float], unknown: str | None) -> None:
        """``native`` as received; ``unknown``: a state that nobody knows, to be shown for some polls."""
        self.native = native
        self.region = region
        self.name = text(native, "TrainingJobName")
        self.arn = arn_of(native, region)
        self.tags = {text(tag, "Key"): text(tag, "Value") for tag in entries(native, "Tags")}
        self._now = now
        self._unknown, self._left_of_unknown = unknown, _POLLS_OF_UNKNOWN if unknown else 0
        self._lock = threading.Lock()
        self._created = self._modified = now()
        self._started: float | None = None
        self._ended: float | None = None
        self._reason = ""
        self._model = ""
        self._state = STARTING
        self._transitions = [_transition(STARTING, self._created)]

    @property
    def created(self) -> float:
        """Seconds since the epoch."""
        return self._created

    @property
    def state(self) -> State:
        """As it is now."""
        return self._state

    @property
    def is_over(self) -> bool:
        """Whether nothing will happen any more."""
        return self._state.status in FINAL

    def enter(self, state: State, *, failure: str = "", model: str = "") -> bool:
        """Be in ``state`` from now on; False, and nothing done, where that cannot be: a job that is being stopped only
        ends, and one that is over stays as it is. ``failure`` is the FailureReason, ``model`` where the model lies."""
        with self._lock:
            if self.is_over or (self._state.status == "Stopping" and state.status == "InProgress"):
                return False
            self._modified = now = self._now()
            if state.secondary == self._state.secondary:
                self._transitions[-1]["StatusMessage"] = state.message
            else:
                self._transitions[-1]["EndTime"] = now
                self._transitions.append(_transition(state, now))
            self._state, self._reason, self._model = state, reason(failure), model
            if state is DOWNLOADING and self._started is None:
                self._started = now
            if state.status in FINAL:
                self._transitions[-1]["EndTime"] = now
                self._ended = now if self._started is not None else None
            return True

    def describe(self) -> dict[str, Any]:
        """The answer of DescribeTrainingJob."""
        told = shapes()["DescribeTrainingJobResponse"]["members"]
        with self._lock:
            return {
                **{name: value for name, value in self.native.items() if name in told and name not in _OF_REQUEST},
                "ResourceConfig": _selected(self.native),
                **self._summary(),
                **({"ModelArtifacts": {"S3ModelArtifacts": self._model}} if self._model else {}),
                **({"FailureReason": self._reason} if self._reason else {}),
                **self._times(),
                **self._shown(),
            }

    def summary(self) -> dict[str, Any]:
        """The job's entry in a list."""
        with self._lock:
            ended = {"TrainingEndTime": self._ended} if self._ended is not None else {}
            return {**self._summary(), **ended, "SecondaryStatus": self._state.secondary}

    @property
    def modified(self) -> float:
        """When its state last changed."""
        return self._modified

    def _summary(self) -> dict[str, Any]:
        return {
            "TrainingJobName": self.name,
            "TrainingJobArn": self.arn,
            "TrainingJobStatus": self._state.status,
            "CreationTime": self._created,
            "LastModifiedTime": self._modified,
        }

    def _times(self) -> dict[str, Any]:
        """Billable time is that of the machines: from the download to the end."""
        if self._started is None:
            return {}
        found: dict[str, Any] = {"TrainingStartTime": self._started}
        if self._ended is not None:
            seconds = max(1, round(self._ended - self._started))
            found.update(TrainingEndTime=self._ended, TrainingTimeInSeconds=seconds, BillableTimeInSeconds=seconds)
        return found

    def _shown(self) -> dict[str, Any]:
        """The state and how it came to it; for some polls in the middle a state that nobody knows."""
        transitions = [dict(transition) for transition in self._transitions]
        secondary = self._state.secondary
        if self._left_of_unknown and self._unknown and self._state is TRAINING:
            self._left_of_unknown -= 1
            secondary = transitions[-1]["Status"] = self._unknown
        return {"SecondaryStatus": secondary, "SecondaryStatusTransitions": transitions}


def arn_of(native: Mapping[str, Any], region: str) -> str:
    """Of the job, in the account of its role: a caller can pass no other."""
    account = text(native, "RoleArn").split(":")[4]
    return f"arn:{partition_of(region)}:sagemaker:{region}:{account}:training-job/{text(native, 'TrainingJobName')}"


def _transition(state: State, now: float) -> dict[str, Any]:
    return {"Status": state.secondary, "StartTime": now, "StatusMessage": state.message}


def _selected(native: Mapping[str, Any]) -> dict[str, Any]:
    """ResourceConfig, with what was chosen of several preferences: here always the first."""
    resources = dict(native["ResourceConfig"])
    if preferences := entries(resources, "InstancePreferences"):
        count = whole(preferences[0], "InstanceCount") or whole(resources, "InstanceCount")
        resources.update(SelectedInstanceType=at(preferences[0], "InstanceType"), SelectedInstanceCount=count)
    return resources
