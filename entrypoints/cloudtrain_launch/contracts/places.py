"""Where a provider's fixed places lie: /opt/ml and /gcs, or the folders that stand for them on a simulated node."""

from __future__ import annotations

import os
from collections.abc import Mapping

OPT_ML = "/opt/ml"
GCS = "/gcs"
_ROOTS = {OPT_ML: "CLOUDTRAIN_SM_ROOT", GCS: "CLOUDTRAIN_GCS_ROOT"}
_PATHS = ("CLOUDTRAIN_SPEC", "CLOUDTRAIN_CODE")


def root(env: Mapping[str, str], place: str) -> str:
    """The folder that is ``place`` on this node."""
    return (env.get(_ROOTS[place]) or place).rstrip("/")


def relocate(env: Mapping[str, str], path: str) -> str:
    """A path of the request as it is on this node."""
    for place in _ROOTS:
        if path == place or path.startswith(place + "/"):
            return root(env, place) + path[len(place) :]
    return path


def relocated(env: Mapping[str, str]) -> dict[str, str]:
    """The environment with the launcher's own paths as they are on this node."""
    return {name: relocate(env, value) if name in _PATHS else value for name, value in env.items()}


def failure_file(env: Mapping[str, str]) -> str:
    """Where the platform reads why a container failed; empty where there is no such place."""
    if env.get("CLOUDTRAIN_PROVIDER") != "sagemaker":
        return ""
    return os.path.join(root(env, OPT_ML), "output", "failure")
