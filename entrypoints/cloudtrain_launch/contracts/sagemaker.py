"""SageMaker: the JSON files and folders below /opt/ml, which CLOUDTRAIN_SM_ROOT puts elsewhere.

Nothing else is there: with a container entry point of one's own the SM_* variables, which only AWS's toolkit sets, do
not exist. The ones that scripts ask for are given to the workers.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from cloudtrain_launch.cluster import FIXED_FOLDERS, Cluster, named_folders
from cloudtrain_launch.contracts import places, reading
from cloudtrain_launch.errors import LaunchError
from cloudtrain_launch.spec import LaunchSpec

PORT = 7777
"""AWS's own toolkit's; any port is open between the nodes of a job."""
OUR_CHANNELS = "cloudtrain_"
"""Before the names of the channels that hold the launcher, the code and the spec."""


def resolve(env: Mapping[str, str], _: LaunchSpec) -> Cluster:
    """The cluster as resourceconfig.json has it, the folders as they lie below the root."""
    root = places.root(env, places.OPT_ML)
    source = _config_path(root, "resourceconfig")
    resources = reading.json_file(source)
    hosts = in_rank_order(reading.list_of_names(resources.get("hosts"), f"{source}: hosts"))
    current = resources.get("current_host")
    if current not in hosts:
        raise LaunchError(f"{source}: current_host is {current!r}, which is not one of hosts: {', '.join(hosts)}")
    interface = resources.get("network_interface_name") or "eth0"
    channels = _channels(root)
    return Cluster(
        provider="sagemaker",
        node=hosts.index(current),
        hosts=hosts,
        port=PORT,
        read_from=source,
        interface=str(interface),
        folders={**_data(channels), **_results(root, env)},
        deliveries=_named_outputs(env),
        variables={**_interface(str(interface)), **_expected(root, hosts, current, channels, env)},
    )


def in_rank_order(hosts: Iterable[str]) -> tuple[str, ...]:
    """``algo-2`` before ``algo-10``; the file's own order is alphabetical. Other names: alphabetical, on every node."""
    names = sorted(hosts)
    numbers = [re.fullmatch(r"algo-(\d+)", name) for name in names]
    if all(numbers):
        return tuple(sorted(names, key=lambda name: int(name.rpartition("-")[2])))
    return tuple(names)


def _config_path(root: str, name: str) -> str:
    return os.path.join(root, "input", "config", f"{name}.json")


def _config(root: str, name: str) -> dict[str, Any]:
    """A file that is there only for jobs that need it."""
    path = _config_path(root, name)
    return reading.json_file(path) if os.path.exists(path) else {}


def _channels(root: str) -> dict[str, str]:
    """Name -> folder of every input channel but ours."""
    names = _config(root, "inputdataconfig")
    return {name: os.path.join(root, "input", "data", name) for name in names if not name.startswith(OUR_CHANNELS)}


def _data(channels: Mapping[str, str]) -> dict[str, str]:
    return {f"CLOUDTRAIN_DATA_{name.upper()}": folder for name, folder in channels.items()}


def _results(root: str, env: Mapping[str, str]) -> dict[str, str]:
    output = os.path.join(root, "output", "data")
    return {
        "CLOUDTRAIN_CHECKPOINT_DIR": _checkpoints(root, env),
        "CLOUDTRAIN_MODEL_DIR": os.path.join(root, "model"),
        "CLOUDTRAIN_OUTPUT_DIR": output,
        "CLOUDTRAIN_METRICS_DIR": os.path.join(output, "metrics"),
    }


def _checkpoints(root: str, env: Mapping[str, str]) -> str:
    """The folder that is kept in step with S3: LocalPath of the request's CheckpointConfig."""
    local = str(_config(root, "checkpointconfig").get("LocalPath") or f"{places.OPT_ML}/checkpoints").rstrip("/")
    return places.relocate(env, local)


def _named_outputs(env: Mapping[str, str]) -> dict[str, str]:
    """SageMaker brings back two folders only, so the others are sent to their S3 place by the launcher."""
    named = named_folders(env).items()
    return {name: uri for name, uri in named if name.startswith("CLOUDTRAIN_OUTPUT_") and name not in FIXED_FOLDERS}


def _interface(name: str) -> dict[str, str]:
    """Left alone, NCCL may take a link-local interface of the container (169.254.x.x)."""
    return {f"{library}_SOCKET_IFNAME": name for library in ("NCCL", "GLOO", "TP")}


def _expected(
    root: str, hosts: tuple[str, ...], current: str, channels: Mapping[str, str], env: Mapping[str, str]
) -> dict[str, str]:
    """The variables of AWS's toolkit that scripts ask for. SM_HOSTS is in rank order here, so that a host's place in it
    is the rank of its node."""
    return {
        "SM_MODEL_DIR": os.path.join(root, "model"),
        "SM_OUTPUT_DATA_DIR": os.path.join(root, "output", "data"),
        "SM_HOSTS": json.dumps(hosts),
        "SM_CURRENT_HOST": current,
        "SM_NUM_GPUS": "0" if env.get("CLOUDTRAIN_NODE_DEVICE") == "cpu" else str(len(glob.glob("/dev/nvidia[0-9]*"))),
        "SM_HPS": json.dumps(_hyperparameters(root)),
        **{f"SM_CHANNEL_{name.upper()}": folder for name, folder in channels.items()},
    }


def _hyperparameters(root: str) -> dict[str, Any]:
    """Values are text in the file; some clients write them as JSON, others as they are."""
    given = _config(root, "hyperparameters").items()
    return {name: _decoded(value) for name, value in given if not name.startswith("sagemaker_")}


def _decoded(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value
