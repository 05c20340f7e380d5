"""The calls: method, path and the operation's name, as Microsoft's API descriptions have it.

Which ones there are: those that azure-ai-ml 1.35.2 was seen to make for command jobs, code, environments, datastores
and the run history, and what cloudtrain's own client asks besides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from werkzeug.routing import Map, Rule

_ARM = (
    "/subscriptions/<subscription>/resourceGroups/<group>/providers/Microsoft.MachineLearningServices"
    "/workspaces/<workspace>"
)
_HISTORY = f"/history/v1.0{_ARM}"
_CALLS = (
    ("GET", "/discovery", "Discovery_Get"),
    ("GET", _ARM, "Workspaces_Get"),
    ("GET", f"{_ARM}/computes/<name>", "Compute_Get"),
    ("GET", f"{_ARM}/datastores", "Datastores_List"),
    ("GET", f"{_ARM}/datastores/<name>", "Datastores_Get"),
    ("PUT", f"{_ARM}/datastores/<name>", "Datastores_CreateOrUpdate"),
    ("POST", f"{_ARM}/datastores/<name>/listSecrets", "Datastores_ListSecrets"),
    ("GET", f"{_ARM}/codes/<name>/versions", "CodeVersions_List"),
    ("GET", f"{_ARM}/codes/<name>/versions/<version>", "CodeVersions_Get"),
    ("PUT", f"{_ARM}/codes/<name>/versions/<version>", "CodeVersions_CreateOrUpdate"),
    (
        "POST",
        f"{_ARM}/codes/<name>/versions/<version>/startPendingUpload",
        "CodeVersions_CreateOrGetStartPendingUpload",
    ),
    ("GET", f"{_ARM}/environments/<name>/versions", "EnvironmentVersions_List"),
    ("GET", f"{_ARM}/environments/<name>/versions/<version>", "EnvironmentVersions_Get"),
    ("PUT", f"{_ARM}/environments/<name>/versions/<version>", "EnvironmentVersions_CreateOrUpdate"),
    ("GET", f"{_ARM}/jobs", "Jobs_List"),
    ("GET", f"{_ARM}/jobs/<name>", "Jobs_Get"),
    ("PUT", f"{_ARM}/jobs/<name>", "Jobs_CreateOrUpdate"),
    ("DELETE", f"{_ARM}/jobs/<name>", "Jobs_Delete"),
    ("POST", f"{_ARM}/jobs/<name>/cancel", "Jobs_Cancel"),
    ("GET", f"{_HISTORY}/runs/<name>/details", "Runs_GetDetails"),
    ("GET", f"{_HISTORY}/runs/<name>/serviceinstances/<node>", "Runs_GetServiceInstance"),
    ("PATCH", f"{_HISTORY}/experiments/<experiment>/runs/<name>", "Runs_Modify"),
    ("POST", f"{_HISTORY}/rundata", "Runs_GetRunData"),
)


def _rules() -> Iterator[Rule]:
    yield from (Rule(path, methods=[method], endpoint=operation) for method, path, operation in _CALLS)


CALLS = Map(list(_rules()), strict_slashes=False, merge_slashes=False, redirect_defaults=False)
OPERATIONS = tuple(operation for *_, operation in _CALLS)
OPEN = frozenset({"Discovery_Get"})
"""What is answered without a token."""


def matched(environ: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """The operation and what its path names. Raises werkzeug's NotFound or MethodNotAllowed."""
    adapter = CALLS.bind("127.0.0.1", path_info=environ.get("PATH_INFO", ""))
    operation, names = adapter.match(method=environ.get("REQUEST_METHOD", "GET"))
    return operation, dict(names)
