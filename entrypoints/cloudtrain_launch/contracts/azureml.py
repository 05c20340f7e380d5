"""Azure ML: the variables of a PyTorch distribution with one process per node, and what public code falls back to.

RANK and WORLD_SIZE count nodes there. A job of one node has no distribution, and none of the variables. How many nodes
there are the spec says; what the platform says of it must agree.
"""

from __future__ import annotations

from collections.abc import Mapping

from cloudtrain_launch.cluster import Cluster, cloud_folders
from cloudtrain_launch.contracts import reading
from cloudtrain_launch.errors import LaunchError
from cloudtrain_launch.spec import LaunchSpec

PORT = 6105
"""MASTER_PORT as Azure documents it."""
_RANKS = ("NODE_RANK", "AZUREML_CR_NODE_RANK", "OMPI_COMM_WORLD_RANK", "AZ_BATCHAI_TASK_INDEX")
# Needed by mlflow to reach the workspace. Not the ones by which DeepSpeed takes the job for one of MPI.
_OF_THE_RUN = ("AZUREML_RUN_", "AZUREML_ROOT_RUN_ID", "AZUREML_ARM_", "AZUREML_SERVICE_ENDPOINT")


def resolve(env: Mapping[str, str], spec: LaunchSpec) -> Cluster:
    """The cluster; LaunchError rather than a guess where the variables do not say who this node is."""
    nodes, said_by = _nodes(env, spec)
    _one_process_per_node(env)
    node, rank_said_by = _rank(env, nodes)
    head, head_said_by = _head(env, nodes)
    folders = _folders(env)
    metrics = folders.pop("CLOUDTRAIN_METRICS_DIR")
    return Cluster(
        provider="azureml",
        node=node,
        # No contract names the others. They come to node 0, which then knows their addresses.
        hosts=(head, *(f"node-{number}" for number in range(1, nodes))),
        hosts_by_address=nodes > 1,
        port=reading.port(env, "MASTER_PORT") if env.get("MASTER_PORT") else PORT,
        read_from=", ".join(filter(None, (said_by, rank_said_by, head_said_by))),
        folders=folders,
        # A file of a mounted datastore goes up when it is closed, and metrics are appended all the time.
        deliveries={"CLOUDTRAIN_METRICS_DIR": metrics},
        variables={name: value for name, value in env.items() if name.startswith(_OF_THE_RUN)},
    )


def _nodes(env: Mapping[str, str], spec: LaunchSpec) -> tuple[int, str]:
    """How many nodes there are, and who says so: all who say anything must agree."""
    said = {"the spec's nodes": spec.nodes} if spec.nodes else {}
    for name in ("AZUREML_NODE_COUNT", "WORLD_SIZE"):
        if env.get(name):
            said[name] = reading.number(env, name)
    if not said and env.get("AZ_BATCH_HOST_LIST"):  # only where nobody else says: what it lists today is not known
        said["AZ_BATCH_HOST_LIST"] = len(_host_list(env))
    if not said:
        raise LaunchError("nothing says how many nodes the job has: neither the spec nor AZUREML_NODE_COUNT")
    (first, nodes), *others = said.items()
    for name, number in others:
        if number != nodes:
            hint = "; Azure must start one process per node" if name == "WORLD_SIZE" else ""
            raise LaunchError(f"{first} is {nodes}, but {name} says {number}{hint}")
    if nodes < 1:
        raise LaunchError(f"{first} is {nodes}, a job has at least one node")
    return nodes, first


def _one_process_per_node(env: Mapping[str, str]) -> None:
    for name, only in (("LOCAL_RANK", "0"), ("OMPI_COMM_WORLD_LOCAL_RANK", "0"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "1")):
        if env.get(name, only) != only:
            raise LaunchError(
                f"{name} is {env[name]!r}: Azure started several processes on this node, where this launcher starts "
                "them itself; the distribution's process_count_per_instance must be 1"
            )


def _rank(env: Mapping[str, str], nodes: int) -> tuple[int, str]:
    """This node's rank and the variable that says it. Never OMPI_COMM_WORLD_NODE_RANK, which counts within a node."""
    name = next((name for name in _RANKS if env.get(name)), "")
    if not name and nodes == 1:
        return 0, ""
    if not name:
        raise LaunchError(f"nothing says which of {nodes} nodes this is: none of {', '.join(_RANKS)} is set")
    rank = reading.number(env, name)
    if not 0 <= rank < nodes:
        raise LaunchError(f"{name} is {rank}, but the job has {nodes} node{'s' if nodes > 1 else ''}")
    return rank, name


def _head(env: Mapping[str, str], nodes: int) -> tuple[str, str]:
    """Node 0's name or address, and the variable that says it."""
    if nodes == 1:
        return "127.0.0.1", ""
    hosts = {
        "MASTER_ADDR": env.get("MASTER_ADDR", ""),
        "AZ_BATCH_MASTER_NODE": env.get("AZ_BATCH_MASTER_NODE", "").partition(":")[0],
        "AZ_BATCH_HOST_LIST": next(iter(_host_list(env)), ""),
        "AZ_BATCHAI_JOB_MASTER_NODE_IP": env.get("AZ_BATCHAI_JOB_MASTER_NODE_IP", ""),
    }
    name = next((name for name, host in hosts.items() if host), None)
    if name is None:
        raise LaunchError(f"nothing says where node 0 is: none of {', '.join(hosts)} is set")
    return hosts[name], name


def _host_list(env: Mapping[str, str]) -> list[str]:
    return [host.strip() for host in env.get("AZ_BATCH_HOST_LIST", "").split(",") if host.strip()]


def _folders(env: Mapping[str, str]) -> dict[str, str]:
    """The folders as the command line has put them in; the service replaces ``${{...}}`` there and nowhere else."""
    folders = cloud_folders(env)
    for name, path in folders.items():
        if "${{" in path or "://" in path:
            raise LaunchError(f"{name} is {path!r}: Azure has not put the folder's path in its place")
    return folders
