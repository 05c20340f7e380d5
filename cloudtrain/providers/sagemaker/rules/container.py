"""What runs, and what it can reach."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cloudtrain.providers.base import NativeProblem
from cloudtrain.providers.image import is_reference
from cloudtrain.providers.nodes import SECRET
from cloudtrain.providers.reading import at, mappings, text
from cloudtrain.providers.sagemaker.environment import OUTPUT
from cloudtrain.spec.problems import shown

_NEEDED = ("AlgorithmSpecification", "ResourceConfig", "StoppingCondition")
_INPUT = "/opt/ml/input/data/"
_FOLDER = r"(/(?!\.{1,2}(/|$))[^/\x00-\x1f\x7f]+)+"
_TAKEN = ("/opt/ml/model", "/opt/ml/output", "/opt/ml/input")


def problems(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    """What is wrong with image, entry point, checkpoints and network."""
    for name in _NEEDED:
        if name not in native and "ServerlessJobConfig" not in native:
            yield NativeProblem((name,), "is missing")
    yield from _image(native)
    yield from _entry_point(native)
    yield from _checkpoints(native)
    yield from _isolation(native)


def _image(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    algorithm = at(native, "AlgorithmSpecification")
    if not isinstance(algorithm, Mapping):
        return
    given = [name for name in ("TrainingImage", "AlgorithmName") if algorithm.get(name)]
    if not given:
        yield NativeProblem(("AlgorithmSpecification", "TrainingImage"), "is missing")
    if (image := text(algorithm, "TrainingImage")) and not is_reference(image):
        yield NativeProblem(("AlgorithmSpecification", "TrainingImage"), f"{shown(image)} is no image reference")
    if len(given) == 2:
        yield NativeProblem(("AlgorithmSpecification", "AlgorithmName"), "cannot stand beside TrainingImage")


def _entry_point(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    """A program in a channel, and no such channel: the container could not start."""
    channels = {text(channel, "ChannelName") for _, channel in mappings(native, "InputDataConfig")}
    words = at(native, "AlgorithmSpecification", "ContainerEntrypoint")
    for number, word in enumerate(words if isinstance(words, list) else ()):
        if isinstance(word, str) and word.startswith(_INPUT):
            channel = word.removeprefix(_INPUT).partition("/")[0]
            if channel not in channels:
                place = ("AlgorithmSpecification", "ContainerEntrypoint", number)
                yield NativeProblem(place, f"lies in the channel {shown(channel)}, which InputDataConfig does not hold")


def _checkpoints(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    path = text(native, "CheckpointConfig", "LocalPath").rstrip("/")
    if path and not re.fullmatch(_FOLDER, path):
        message = f"{shown(path)} is no folder of the container, such as /opt/ml/checkpoints"
        yield NativeProblem(("CheckpointConfig", "LocalPath"), message)
    for taken in _TAKEN:
        if path == taken or path.startswith(f"{taken}/"):
            place = ("CheckpointConfig", "LocalPath")
            yield NativeProblem(place, f"lies in {taken}, which has another use: take /opt/ml/checkpoints")


def _isolation(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    environment = at(native, "Environment")
    if at(native, "EnableNetworkIsolation") is not True or not isinstance(environment, Mapping):
        return
    what = {SECRET: "fetched", OUTPUT: "uploaded"}
    for start, done in what.items():
        for name in environment:
            if str(name).startswith(start):
                message = f"cannot be {done} by the container: EnableNetworkIsolation cuts it off from AWS"
                yield NativeProblem(("Environment", name), message)
