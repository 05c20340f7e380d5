"""Vertex AI: CLUSTER_SPEC says who is there; folders are gs:// URIs and mounted at /gcs.

RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are not read: on jobs of several replicas they count nodes, on jobs of one
they are not there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from cloudtrain_launch.cluster import Cluster, cloud_folders
from cloudtrain_launch.contracts import places, reading
from cloudtrain_launch.errors import LaunchError
from cloudtrain_launch.spec import LaunchSpec

PORT = 2222
"""Of every replica, where CLUSTER_SPEC leaves it out."""
WORKER_POOLS = ("workerpool0", "workerpool1")


def resolve(env: Mapping[str, str], _: LaunchSpec) -> Cluster:
    """The cluster as CLUSTER_SPEC has it. Without one, or where it names no cluster, the job has one replica."""
    node, hosts, port = _members(env.get("CLUSTER_SPEC", ""))
    folders = {name: local_path(name, value, env) for name, value in cloud_folders(env).items()}
    metrics = folders.pop("CLOUDTRAIN_METRICS_DIR")
    return Cluster(
        provider="vertex",
        node=node,
        hosts=hosts,
        port=port,
        read_from="CLUSTER_SPEC",
        # The name is a service's; only 2222, 3333 and 6000 lead through it to the replica.
        store_by_address=True,
        folders=folders,
        # Object stores take no appending, and metrics are appended all the time.
        deliveries={"CLOUDTRAIN_METRICS_DIR": metrics},
        variables={name: value for name, value in env.items() if name.startswith(("AIP_", "CLOUD_ML_PROJECT_ID"))},
    )


def _members(text: str) -> tuple[int, tuple[str, ...], int]:
    """This node's rank, all hosts, and node 0's port. What ``job`` and ``environment`` say is not looked at."""
    spec = reading.json_object(text, "CLUSTER_SPEC") if text.strip() else {}
    cluster = spec.get("cluster")
    if not cluster:
        return 0, ("127.0.0.1",), PORT
    if not isinstance(cluster, dict):
        raise LaunchError(f"CLUSTER_SPEC: cluster must be an object of worker pools, not {cluster!r}")
    pools = [_pool(cluster, name) for name in WORKER_POOLS]
    if not pools[0]:
        raise LaunchError(f"CLUSTER_SPEC: cluster has no workerpool0; it has {', '.join(cluster)}")
    hosts, ports = zip(*[_address(entry) for pool in pools for entry in pool])
    return _rank(spec.get("task"), [len(pool) for pool in pools]), hosts, ports[0]


def _pool(cluster: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return reading.list_of_names(cluster[name], f"CLUSTER_SPEC: cluster.{name}") if cluster.get(name) else ()


def _address(entry: str) -> tuple[str, int]:
    host, colon, text = entry.partition(":")
    if not host or (colon and not text.isdecimal()):
        raise LaunchError(f"CLUSTER_SPEC: {entry!r} is not host:port")
    where = f"CLUSTER_SPEC: the port of {host}"
    return host, reading.as_port(reading.whole(text, where), where) if colon else PORT


def _rank(task: object, sizes: list[int]) -> int:
    if not isinstance(task, dict):
        if sum(sizes) == 1 and task is None:
            return 0
        raise LaunchError(f"CLUSTER_SPEC: task must say which replica this is, not {task!r}")
    pool, text = task.get("type"), str(task.get("index", ""))
    if pool not in WORKER_POOLS:
        raise LaunchError(
            f"this replica is in {pool!r}, and only workerpool0 and workerpool1 train; "
            "give the other pools a command of their own (a reduction server, for one)"
        )
    place = WORKER_POOLS.index(pool)
    index = reading.whole(text, "CLUSTER_SPEC: task.index") if text.isdecimal() else -1
    if not 0 <= index < sizes[place]:
        raise LaunchError(f"CLUSTER_SPEC: task.index is {task.get('index')!r}, {pool} has {sizes[place]} replicas")
    return sum(sizes[:place]) + index


def local_path(name: str, value: str, env: Mapping[str, str]) -> str:
    """Where a ``gs://bucket/path`` is mounted; a path is one already."""
    if value.startswith("gs://"):
        bucket, _, path = value[len("gs://") :].partition("/")
        if not bucket:
            raise LaunchError(f"{name} names no bucket: {value!r}")
        return os.path.join(places.root(env, places.GCS), bucket, path).rstrip("/")
    if "://" in value or not os.path.isabs(value):
        raise LaunchError(f"{name} must be gs://bucket/path or an absolute path, not {value!r}")
    return places.relocate(env, value)
