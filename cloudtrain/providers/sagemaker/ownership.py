"""Overrides of what cloudtrain needs for itself: a run could not be found, started or continued without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cloudtrain.providers.reading import at, mappings, text, whole
from cloudtrain.providers.sagemaker.places import CODE_CHANNEL, LAUNCH, SPEC_CHANNEL

if TYPE_CHECKING:
    from cloudtrain.spec.problems import Path

_OVERRIDES: Path = ("overrides", "sagemaker")


def ownership_problems(made: Mapping[str, Any], merged: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """What the overrides took from the request, with what to do instead."""
    if merged.get("TrainingJobName") != made["TrainingJobName"]:
        yield (*_OVERRIDES, "TrainingJobName"), "is made from name:, one for every attempt, and cannot be given"
    yield from _variables(made["Environment"], merged.get("Environment"))
    words = [at(merged, "AlgorithmSpecification", name) for name in ("ContainerEntrypoint", "ContainerArguments")]
    if not any(LAUNCH in str(word) for word in words):
        yield (*_OVERRIDES, "AlgorithmSpecification"), f"no longer starts {LAUNCH}, which starts the script"
    if lost := [name for name in (CODE_CHANNEL, SPEC_CHANNEL) if _source(made, name) != _source(merged, name)]:
        advice = "to change channels, write below InputDataConfig by their numbers instead of a list"
        yield (*_OVERRIDES, "InputDataConfig"), f"lost {lost[0]}, without which no node starts; {advice}"
    nodes, counts = made["ResourceConfig"]["InstanceCount"], _counts(at(merged, "ResourceConfig"))
    if counts != {nodes}:
        asked = " or ".join(map(str, sorted(counts)))
        yield (*_OVERRIDES, "ResourceConfig"), f"asks for {asked} nodes and the job for {nodes}; give resources.nodes"


def _variables(ours: Mapping[str, Any], found: Any) -> Iterator[tuple[Path, str]]:
    if not isinstance(found, Mapping):
        yield (*_OVERRIDES, "Environment"), "must keep the variables that cloudtrain sets: give single ones"
        return
    for name in {**ours, **found}:
        if name.upper().startswith("CLOUDTRAIN_") and ours.get(name) != found.get(name):
            yield (*_OVERRIDES, "Environment", name), "is set by cloudtrain and cannot be given"


def _source(native: Mapping[str, Any], name: str) -> Any:
    """Where a channel of ours lies, and that every node gets all of it."""
    found = (channel for _, channel in mappings(native, "InputDataConfig") if text(channel, "ChannelName") == name)
    return at(next(found, None), "DataSource")


def _counts(resources: Any) -> set[int]:
    """How many nodes there may be: of several preferences the service takes one."""
    if groups := [whole(group, "InstanceCount") or 0 for _, group in mappings(resources, "InstanceGroups")]:
        return {sum(groups)}
    count = whole(resources, "InstanceCount") or 0
    each = [whole(item, "InstanceCount") or count for _, item in mappings(resources, "InstancePreferences")]
    return set(each or [count])
