"""``ResourceConfig``: one way of naming machines, their number and their disks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cloudtrain.providers.base import NativeProblem
from cloudtrain.providers.reading import at, mappings, text, whole
from cloudtrain.providers.sagemaker.volumes import has_store

_PLACE = "ResourceConfig"
_WAYS = ("InstanceType", "InstanceGroups", "InstancePreferences")
_READ_ONLY = ("SelectedInstanceType", "SelectedInstanceCount")


def problems(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    """What the fields of ResourceConfig get wrong together."""
    resources = at(native, _PLACE)
    if not isinstance(resources, Mapping):
        return
    yield from _ways(resources)
    yield from _counts(resources)
    yield from _preferences(native, resources)
    yield from _disks(native, resources)
    for name in _READ_ONLY:
        if name in resources:
            yield NativeProblem((_PLACE, name), "is only told by the service, and not accepted here")


def types_of(native: Mapping[str, Any]) -> list[str]:
    """All machine types that the request names."""
    resources = at(native, _PLACE)
    listed = [item for way in _WAYS[1:] for _, item in mappings(resources, way)]
    return list(dict.fromkeys(filter(None, (text(holder, "InstanceType") for holder in (resources, *listed)))))


def _ways(resources: Mapping[str, Any]) -> Iterator[NativeProblem]:
    given = [way for way in _WAYS if resources.get(way)]
    if not given:
        yield NativeProblem((_PLACE, "InstanceType"), "is missing: name the machines")
    for way in given[1:]:
        yield NativeProblem((_PLACE, way), f"cannot stand beside {given[0]}: give one of {', '.join(_WAYS)}")
    if resources.get("InstanceGroups") and "InstanceCount" in resources:
        yield NativeProblem((_PLACE, "InstanceCount"), "cannot stand beside InstanceGroups, which count for themselves")


def _counts(resources: Mapping[str, Any]) -> Iterator[NativeProblem]:
    """The model allows 0, and a job of no machines is refused."""
    if resources.get("InstanceType") and "InstanceCount" not in resources:
        yield NativeProblem((_PLACE, "InstanceCount"), "is missing")
    if whole(resources, "InstanceCount") == 0:
        yield NativeProblem((_PLACE, "InstanceCount"), "0, at least 1")
    for way in _WAYS[1:]:
        for number, item in mappings(resources, way):
            if whole(item, "InstanceCount") == 0:
                yield NativeProblem((_PLACE, way, number, "InstanceCount"), "0, at least 1")


def _preferences(native: Mapping[str, Any], resources: Mapping[str, Any]) -> Iterator[NativeProblem]:
    preferences = [item for _, item in mappings(resources, "InstancePreferences")]
    if not preferences:
        return
    if "InstancePlacementConfig" in resources:
        yield NativeProblem((_PLACE, "InstancePlacementConfig"), "cannot stand beside InstancePreferences")
    if at(native, "EnableManagedSpotTraining") is True:
        message = "cannot be used with InstancePreferences, which know on-demand capacity and training plans"
        yield NativeProblem(("EnableManagedSpotTraining",), message)
    counted = [("InstanceCount" in item) for item in preferences]
    if any(counted) == ("InstanceCount" in resources) or any(counted) != all(counted):
        message = "InstanceCount must stand either in every item or once, in ResourceConfig"
        yield NativeProblem((_PLACE, "InstancePreferences"), message)


def _disks(native: Mapping[str, Any], resources: Mapping[str, Any]) -> Iterator[NativeProblem]:
    types = types_of(native)
    with_store = [name for name in types if has_store(name)]
    without = [name for name in types if name not in with_store]
    if without and not resources.get("VolumeSizeInGB"):
        yield NativeProblem((_PLACE, "VolumeSizeInGB"), f"is missing: {without[0]} has no disks of its own")
    if with_store and resources.get("VolumeKmsKeyId"):
        message = f"must not be given: {with_store[0]} has disks of its own, encrypted by the machine"
        yield NativeProblem((_PLACE, "VolumeKmsKeyId"), message)
