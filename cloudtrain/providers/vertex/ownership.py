"""Overrides of what cloudtrain needs for itself: a run could not be found, started or continued without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cloudtrain.providers.reading import at, entries, section
from cloudtrain.providers.vertex.labels import OURS
from cloudtrain.providers.vertex.reading import environment

if TYPE_CHECKING:
    from cloudtrain.spec.problems import Path

_OVERRIDES: Path = ("overrides", "vertex")
_POOLS = ("jobSpec", "workerPoolSpecs")
_FIELDS = "to change fields of the pools, write them below workerPoolSpecs.'*' instead of a list"


def ownership_problems(made: Mapping[str, Any], merged: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """What the overrides took from the request, with what to do instead."""
    if made["displayName"] != merged.get("displayName"):
        yield (*_OVERRIDES, "displayName"), "is made from name:, one for every attempt, and cannot be given"
    labels = section(merged, "labels")
    for name, label in made["labels"].items():
        if name.startswith(OURS) and labels.get(name) != label:
            yield (*_OVERRIDES, "labels", name), "is the label by which cloudtrain finds its runs; leave it"
    pools, own = entries(merged, *_POOLS), made["jobSpec"]["workerPoolSpecs"]
    if len(own) == 1 and pools[1:2] and pools[1]:
        yield (*_OVERRIDES, *_POOLS), "pool 1 would be a second node; give resources.nodes instead"
    for number, ours in enumerate(own):
        found = pools[number] if number < len(pools) else None
        if flaw := _taken(ours, found):
            yield (*_OVERRIDES, *_POOLS), f"pool {number} {flaw}"
            return


def _taken(ours: Mapping[str, Any], found: Any) -> str:
    """What a pool of ours lost."""
    if found is None:
        return f"is gone; {_FIELDS}"
    if at(found, "replicaCount") != ours["replicaCount"]:
        return "has another replicaCount; give resources.nodes instead"
    container = section(found, "containerSpec")
    if container.get("command") != ours["containerSpec"]["command"] or "args" in container:
        return f"no longer starts launch.py; {_FIELDS}"
    wanted, have = environment(ours), environment(found)
    lost = [name for name, text in wanted.items() if name.startswith("CLOUDTRAIN_") and have.get(name) != text]
    return f"lost {lost[0]}; give variables in environment.env instead" if lost else ""
