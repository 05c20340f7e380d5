"""What a cloud node makes for itself, and where: below its temporary folder, gone with it at the end."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import replace

from cloudtrain_launch.cluster import Cluster
from cloudtrain_launch.errors import LaunchError
from cloudtrain_launch.spec import LaunchSpec


def code(folder: str) -> str:
    """The user's code, unpacked."""
    return os.path.join(folder, "code")


def data_variable(channel: str) -> str:
    """The variable that names a channel's folder."""
    return f"CLOUDTRAIN_DATA_{channel.upper()}"


def placed(cluster: Cluster, spec: LaunchSpec, folder: str) -> Cluster:
    """The cluster with folders for what is brought to this node first, and for what is taken from it last."""
    sources = {}
    for name, channel in spec.channels.items():
        variable = data_variable(name)
        if variable not in cluster.folders:
            raise LaunchError(f"the spec has a channel {name!r}, but {variable} is not set")
        if channel.get("mode") == "download" or channel.get("shard") == "by-object":
            sources[variable] = cluster.folders[variable]
    made = {variable: os.path.join(folder, "data", variable) for variable in sources}
    made.update({variable: os.path.join(folder, "results", variable) for variable in cluster.deliveries})
    return replace(cluster, folders={**cluster.folders, **made}, sources=sources)


def remove(folder: str) -> None:
    """Remove a temporary folder, whatever rights a script has taken from folders in it."""
    shutil.rmtree(folder, ignore_errors=True)
    if os.path.exists(folder):
        _open_up(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _open_up(folder: str) -> None:
    with contextlib.suppress(OSError):
        os.chmod(folder, 0o700)
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                _open_up(entry.path)
