"""Overrides of what cloudtrain needs for itself: a run could not be found, started or continued without it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cloudtrain.providers.azureml import tags
from cloudtrain.providers.azureml.folders import FOLDERS
from cloudtrain.providers.azureml.reading import section

if TYPE_CHECKING:
    from cloudtrain.spec.problems import Path

_OVERRIDES: Path = ("overrides", "azureml")
_OURS = "CLOUDTRAIN_"
_NEEDED = r'\w+="\$\{\{[^}]+\}\}"|launch\.py'
"""What of the command has to stay: launch.py and the paths it is given."""


def ownership_problems(made: Mapping[str, Any], merged: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """What the overrides took from the request, with what to do instead."""
    if made["name"] != merged.get("name"):
        yield (*_OVERRIDES, "name"), "is made from name:, one for every attempt, and cannot be given"
    for name in _changed(made, merged, "tags", tags.OURS):
        yield (*_OVERRIDES, "tags", name), "is the tag by which cloudtrain finds its runs; leave it"
    for name in _changed(made, merged, "environment_variables", _OURS):
        yield (*_OVERRIDES, "environment_variables", name), "is set by cloudtrain and cannot be given"
    for name in FOLDERS:
        if name not in section(merged, "outputs"):
            yield (*_OVERRIDES, "outputs", name), "is a folder of the run, without which launch.py does not start"
    command = str(merged.get("command", ""))
    if missing := [part for part in re.findall(_NEEDED, made["command"]) if part not in command]:
        text = (
            f"lacks {' '.join(missing)}; a command may stand before or behind what cloudtrain sends, not in its place"
        )
        yield (*_OVERRIDES, "command"), text


def _changed(made: Mapping[str, Any], merged: Mapping[str, Any], name: str, ours: str) -> Iterator[str]:
    """The entries of ours that are not as they were made."""
    before, after = section(made, name), section(merged, name)
    for key in {**before, **after}:
        if key.upper().startswith(ours.upper()) and before.get(key) != after.get(key):
            yield key
