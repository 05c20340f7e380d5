"""Overrides of what cloudtrain needs for itself: a run could not be found, started or continued without it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cloudtrain.providers.azureml.folders import OURS
from cloudtrain.providers.reading import at, section

if TYPE_CHECKING:
    from cloudtrain.spec.problems import Path

_OVERRIDES: Path = ("overrides", "azureml")
_FIXED = {
    ("name",): "is made from name:, one for every attempt, and cannot be given",
    ("code",): "is the folder that cloudtrain fills with launch.py and the code; leave it",
    ("resources", "instance_count"): "is given by resources.nodes, which spec.json holds, too",
}
_SHARED = {
    "tags": "is the tag by which cloudtrain finds its runs; leave it",
    "environment_variables": "is set by cloudtrain and cannot be given",
    "inputs": "is the folder of spec.json, without which no node starts; leave it",
    "outputs": "is a folder of the run, without which launch.py does not start",
}
"""Where entries of ours stand beside the user's, and what is to be said of one that is taken."""
_NEEDED = r'\w+="\$\{\{[^}]+\}\}[^"]*"|launch\.py'
"""What of the command has to stay: launch.py and the paths it is given."""


def ownership_problems(made: Mapping[str, Any], merged: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """What the overrides took from the request, with what to do instead."""
    for path, text in _FIXED.items():
        if at(made, *path) != at(merged, *path):
            yield (*_OVERRIDES, *path), text
    for name, lost in _SHARED.items():
        if isinstance(merged.get(name), Mapping):
            yield from (((*_OVERRIDES, name, key), lost) for key in _taken(made, merged, name))
        else:
            yield (*_OVERRIDES, name), "must keep what cloudtrain puts there: give single entries"
    command = str(merged.get("command", ""))
    if missing := [part for part in re.findall(_NEEDED, made["command"]) if part not in command]:
        text = f"lacks {' '.join(missing)}: put commands before or behind the one that cloudtrain sends"
        yield (*_OVERRIDES, "command"), text


def _taken(made: Mapping[str, Any], merged: Mapping[str, Any], name: str) -> Iterator[str]:
    """The entries of ours that are not as they were made; of outputs, those that are gone."""
    before, after = section(made, name), section(merged, name)
    for key in {**before, **after}:
        changed = key not in after if name == "outputs" else before.get(key) != after.get(key)
        if key.lower().startswith(OURS) and changed:
            yield key
