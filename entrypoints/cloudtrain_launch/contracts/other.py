"""A provider that this launcher does not know by name: all is in CLOUDTRAIN_* variables, as in local mode.

CLOUDTRAIN_HOSTS (names or addresses of all nodes, in rank order, with commas between), CLOUDTRAIN_NODE_RANK,
CLOUDTRAIN_PORT (where node 0 listens for the others), and the folders, as paths on the node. Unlike a local node it is
prepared first: code, requirements and data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cloudtrain_launch.cluster import Cluster, cloud_folders
from cloudtrain_launch.contracts import local
from cloudtrain_launch.spec import LaunchSpec


def resolve(env: Mapping[str, str], spec: LaunchSpec) -> Cluster:
    """The cluster as the variables have it."""
    return replace(local.resolve(env, spec), provider=env["CLOUDTRAIN_PROVIDER"], folders=cloud_folders(env))
