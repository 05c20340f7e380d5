"""Local mode: everything is in CLOUDTRAIN_* variables, written by the local provider's contract."""

from __future__ import annotations

from collections.abc import Mapping

from cloudtrain_launch.cluster import Cluster, named_folders
from cloudtrain_launch.contracts import reading
from cloudtrain_launch.errors import LaunchError
from cloudtrain_launch.spec import LaunchSpec


def resolve(env: Mapping[str, str], _: LaunchSpec) -> Cluster:
    """The cluster of a local run."""
    hosts = tuple(reading.need(env, "CLOUDTRAIN_HOSTS").split(","))
    node = reading.number(env, "CLOUDTRAIN_NODE_RANK")
    if not all(hosts):
        raise LaunchError(f"CLOUDTRAIN_HOSTS has an empty name: {env['CLOUDTRAIN_HOSTS']!r}")
    if not 0 <= node < len(hosts):
        raise LaunchError(f"CLOUDTRAIN_NODE_RANK is {node}, but CLOUDTRAIN_HOSTS names {len(hosts)} nodes")
    return Cluster(
        provider="local",
        node=node,
        hosts=hosts,
        port=reading.port(env, "CLOUDTRAIN_PORT"),
        read_from="CLOUDTRAIN_HOSTS",
        folders=named_folders(env),
    )
