"""What the service refuses when a CustomJob is created, in its own words for it.

The rules are those of ``providers/vertex``; the service itself is milder in a few points, which are settled first:
what it fills in, what it replaces, and what it ignores.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

from cloudtrain.emulator.vertex.errors import ServiceError
from cloudtrain.providers.reading import at, section, text
from cloudtrain.providers.vertex.check import check
from cloudtrain.providers.vertex.places import SCHEME
from cloudtrain.providers.vertex.rules import SET_BY_SERVICE
from cloudtrain.spec.problems import Path

_DEFAULT_TIMEOUT = "604800s"
_REPLACED = {"ON_DEMAND": "STANDARD", "LOW_COST": "SPOT"}
_PARENT = re.compile(r"projects/([a-z0-9.:-]+)/locations/([a-z]+(?:-[a-z]+)+[0-9]+)")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def wanted(received: Mapping[str, Any]) -> dict[str, Any]:
    """The request without what only the service says: whoever sends an answer back (the SDK does) is not refused."""
    return {name: value for name, value in received.items() if name not in SET_BY_SERVICE}


def refuse_flaws(native: Mapping[str, Any]) -> None:
    """Raises ServiceError with all that is wrong."""
    found = check(_completed(native)).problems
    if found:
        listed = (
            f"\t{number}.Field: {_field(flaw.path)}; Message: {flaw.message}" for number, flaw in enumerate(found, 1)
        )
        raise ServiceError("INVALID_ARGUMENT", f"List of found errors:{''.join(listed)}\t")


def parent_of(project: str, location: str) -> str:
    """Where jobs lie. Raises ServiceError for what cannot be a project or a region."""
    parent = f"projects/{project}/locations/{location}"
    if not _PARENT.fullmatch(parent):
        raise ServiceError("INVALID_ARGUMENT", f"Invalid resource field value in the request: {parent}")
    return parent


def _completed(native: Mapping[str, Any]) -> dict[str, Any]:
    """As the service reads it: 7 days if nothing is said, today's names of strategies, no restart without retries.

    Colons in the output's path are no flaw either: the SDK itself makes up such paths.
    """
    job = copy.deepcopy(dict(native))
    spec = job.get("jobSpec")
    if isinstance(spec, dict):
        scheduling = {"timeout": _DEFAULT_TIMEOUT, **section(spec, "scheduling")}
        strategy = text(scheduling, "strategy")
        if strategy in _REPLACED:
            scheduling["strategy"] = _REPLACED[strategy]
        if at(scheduling, "disableRetries") is True:
            scheduling.pop("restartJobOnWorkerRestart", None)
        spec["scheduling"] = scheduling
        prefix = text(spec, "baseOutputDirectory", "outputUriPrefix")
        if prefix.startswith(SCHEME):
            spec["baseOutputDirectory"]["outputUriPrefix"] = SCHEME + prefix.removeprefix(SCHEME).replace(":", "-")
    return job


def _field(path: Path) -> str:
    """``job_spec.worker_pool_specs[0].replica_count``. Names of labels stay as they are."""
    found = ""
    for number, step in enumerate(path):
        if isinstance(step, int):
            found += f"[{step}]"
            continue
        name = step if path[0] == "labels" and number else _HUMP.sub("_", step).lower()
        found += f".{name}" if found else name
    return found or "custom_job"
