"""``InputDataConfig``: channels by themselves and together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cloudtrain.providers.base import NativeProblem
from cloudtrain.providers.reading import at, mappings, text
from cloudtrain.spec.problems import shown

_PLACE = "InputDataConfig"
_SOURCES = ("S3DataSource", "FileSystemDataSource", "DatasetSource")


def problems(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    """What is wrong with channels."""
    seen: set[str] = set()
    for number, channel in mappings(native, _PLACE):
        name = text(channel, "ChannelName")
        if name and name in seen:
            yield NativeProblem((_PLACE, number, "ChannelName"), f"{shown(name)} is the name of an earlier channel")
        seen.add(name)
        yield from _source(native, channel, number)
        yield from _mode(native, channel, number)
    yield from _groups(native)


def _source(native: Mapping[str, Any], channel: Mapping[str, Any], number: int) -> Iterator[NativeProblem]:
    source = at(channel, "DataSource")
    given = [name for name in _SOURCES if isinstance(source, Mapping) and name in source]
    if isinstance(source, Mapping) and len(given) != 1:
        yield NativeProblem((_PLACE, number, "DataSource"), f"must hold exactly one of {', '.join(_SOURCES)}")
    if "FileSystemDataSource" in given and not at(native, "VpcConfig"):
        place = (_PLACE, number, "DataSource", "FileSystemDataSource")
        yield NativeProblem(place, "a file system is reached inside its VPC alone: VpcConfig is missing")


def _mode(native: Mapping[str, Any], channel: Mapping[str, Any], number: int) -> Iterator[NativeProblem]:
    """The channel's own mode, or that of the job."""
    mode = text(channel, "InputMode") or text(native, "AlgorithmSpecification", "TrainingInputMode")
    place = (_PLACE, number, "InputMode")
    kind, uri = (text(channel, "DataSource", "S3DataSource", name) for name in ("S3DataType", "S3Uri"))
    if mode == "Pipe":
        yield NativeProblem(place, "Pipe gives a channel to one reader, and every rank reads: use FastFile or File")
    elif kind == "AugmentedManifestFile":
        yield NativeProblem(place, "AugmentedManifestFile comes through Pipe alone, which ranks cannot share")
    elif text(channel, "CompressionType") == "Gzip":
        yield NativeProblem((_PLACE, number, "CompressionType"), "Gzip is unpacked in Pipe mode alone")
    if mode == "FastFile" and kind and kind != "S3Prefix":
        yield NativeProblem(place, f"FastFile takes S3Prefix alone, not {kind}")
    if mode == "FastFile" and kind == "S3Prefix" and uri and not uri.endswith("/"):
        where = (_PLACE, number, "DataSource", "S3DataSource", "S3Uri")
        yield NativeProblem(where, f"FastFile takes whole folders: {shown(uri)} must end with /")
    if mode == "FastFile" and at(channel, "DataSource", "FileSystemDataSource"):
        yield NativeProblem(place, "a file system is read in File mode alone")


def _groups(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    """Channels for groups of machines: all or none, and groups that there are."""
    groups = {text(group, "InstanceGroupName") for _, group in mappings(native, "ResourceConfig", "InstanceGroups")}
    named = {
        number: at(channel, "DataSource", "S3DataSource", "InstanceGroupNames")
        for number, channel in mappings(native, _PLACE)
    }
    for number, names in named.items():
        place = (_PLACE, number, "DataSource", "S3DataSource", "InstanceGroupNames")
        if not names and any(named.values()):
            yield NativeProblem(place, "is missing: if one channel names groups, all must")
        for name in names if isinstance(names, list) else ():
            if isinstance(name, str) and name not in groups:
                yield NativeProblem(place, f"{shown(name)} is none of ResourceConfig.InstanceGroups")
