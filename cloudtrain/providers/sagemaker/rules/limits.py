"""The service's limits on lengths, in botocore's model too, for when that is not at hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cloudtrain.providers.base import NativeProblem
from cloudtrain.providers.reading import section
from cloudtrain.providers.sagemaker.wording import long_key, too_much
from cloudtrain.spec.problems import Path

_EVERY = "*"

_MOST: Mapping[str, int] = {
    "TrainingJobName": 63,
    "AlgorithmSpecification.TrainingImage": 255,
    "AlgorithmSpecification.ContainerEntrypoint": 100,
    "AlgorithmSpecification.ContainerEntrypoint.*": 256,
    "AlgorithmSpecification.ContainerArguments": 100,
    "AlgorithmSpecification.ContainerArguments.*": 256,
    "AlgorithmSpecification.MetricDefinitions": 40,
    "AlgorithmSpecification.MetricDefinitions.*.Name": 255,
    "AlgorithmSpecification.MetricDefinitions.*.Regex": 500,
    "HyperParameters": 100,
    "HyperParameters.*": 2500,
    "Environment": 100,
    "Environment.*": 512,
    "InputDataConfig": 20,
    "InputDataConfig.*.ChannelName": 64,
    "InputDataConfig.*.DataSource.S3DataSource.S3Uri": 1024,
    "OutputDataConfig.S3OutputPath": 1024,
    "CheckpointConfig.S3Uri": 1024,
    "ResourceConfig.InstanceGroups": 5,
    "ResourceConfig.InstancePreferences": 5,
    "VpcConfig.Subnets": 16,
    "VpcConfig.SecurityGroupIds": 5,
    "Tags": 50,
    "Tags.*.Key": 128,
    "Tags.*.Value": 256,
}
"""Characters of a text, entries of a list or mapping."""

_MOST_KEY: Mapping[str, int] = {"HyperParameters": 256, "Environment": 512}


def problems(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    """Everything that is too long."""
    for place, most in _MOST.items():
        for path, value in _found(native, place.split("."), ()):
            if isinstance(value, (str, list, Mapping)) and len(value) > most:
                yield NativeProblem(path, too_much(value, most))
    for place, most in _MOST_KEY.items():
        for key in section(native, place):
            if len(key) > most:
                yield NativeProblem((place, key), long_key(key, most))


def _found(value: Any, steps: list[str], path: Path) -> Iterator[tuple[Path, Any]]:
    if not steps:
        yield path, value
        return
    for key, item in _below(value, steps[0]):
        yield from _found(item, steps[1:], (*path, key))


def _below(value: Any, step: str) -> Iterator[tuple[str | int, Any]]:
    if step == _EVERY and isinstance(value, list):
        yield from enumerate(value)
    elif isinstance(value, Mapping):
        yield from ((key, item) for key, item in value.items() if step in (_EVERY, key))
