"""What SageMaker gives every node: JSON files and folders below /opt/ml, and few variables.

The request's own entry point is used, so AWS's training toolkit does not run and none of its SM_ variables are there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from cloudtrain.providers.base import NodeContract, Request
from cloudtrain.providers.reading import at, mappings, text, whole
from cloudtrain.providers.sagemaker.account import partition_of
from cloudtrain.providers.sagemaker.places import CODE_CHANNEL, SPEC_CHANNEL

_ROOT = "opt/ml"
_CONFIG = f"{_ROOT}/input/config"
_OURS = {CODE_CHANNEL: "code", SPEC_CHANNEL: "spec"}


class _Group(NamedTuple):
    """Machines of one type."""

    name: str
    type: str
    hosts: tuple[str, ...]


def node_contract(request: Request, node: int) -> NodeContract:
    """What node ``node`` finds."""
    native = request.native
    config = {
        "resourceconfig": _resources(native, node),
        "inputdataconfig": _channels(native),
        "hyperparameters": dict(at(native, "HyperParameters") or {}),
    }
    if checkpoints := at(native, "CheckpointConfig"):
        config["checkpointconfig"] = dict(checkpoints)
    return NodeContract(
        env={**native["Environment"], **_variables(request)},
        files={f"{_CONFIG}/{name}.json": json.dumps(content) for name, content in config.items()},
        places=dict(_places(native)),
    )


def _variables(request: Request) -> dict[str, str]:
    """The platform's own, and where the node's /opt/ml is."""
    region, account = request.account["region"], text(request.native, "RoleArn").split(":")[4]
    found = {
        "TRAINING_JOB_NAME": request.name,
        "TRAINING_JOB_ARN": f"arn:{partition_of(region)}:sagemaker:{region}:{account}:training-job/{request.name}",
        "AWS_REGION": region,
        "CLOUDTRAIN_SM_ROOT": f"{{root}}/{_ROOT}",
    }
    if whole(request.native, "ResourceConfig", "KeepAlivePeriodInSeconds"):
        found["SAGEMAKER_MANAGED_WARMPOOL_CACHE_DIRECTORY"] = f"{{root}}/{_ROOT}/sagemaker/warmpoolcache"
    return found


def _resources(native: Mapping[str, Any], node: int) -> dict[str, Any]:
    groups = _groups(native)
    current, group = [(host, group) for group in groups for host in group.hosts][node]
    return {
        "current_host": current,
        "current_instance_type": group.type,
        "current_group_name": group.name,
        # In the order of letters, so algo-10 comes before algo-2; those of a group in no order at all.
        "hosts": sorted(host for group in groups for host in group.hosts),
        "instance_groups": [
            {"instance_group_name": group.name, "instance_type": group.type, "hosts": list(reversed(group.hosts))}
            for group in groups
        ],
        "network_interface_name": "eth0",
    }


def _groups(native: Mapping[str, Any]) -> list[_Group]:
    """One group, unless the request says other; of preferences the first, as if there were capacity."""
    resources = at(native, "ResourceConfig")
    wanted = [
        (text(group, "InstanceGroupName"), text(group, "InstanceType"), whole(group, "InstanceCount") or 1)
        for _, group in mappings(resources, "InstanceGroups")
    ]
    if not wanted:
        first = next((item for _, item in mappings(resources, "InstancePreferences")), resources)
        count = whole(first, "InstanceCount") or whole(resources, "InstanceCount") or 1
        wanted = [("homogeneousCluster", text(first, "InstanceType"), count)]
    groups, used = [], 0
    for name, kind, count in wanted:
        groups.append(_Group(name, kind, tuple(f"algo-{used + number + 1}" for number in range(count))))
        used += count
    return groups


def _channels(native: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """FastFile is told as File, and a file system as replicated."""
    found = {}
    for _, channel in mappings(native, "InputDataConfig"):
        mode = text(channel, "InputMode") or text(native, "AlgorithmSpecification", "TrainingInputMode")
        content = text(channel, "ContentType")
        found[text(channel, "ChannelName")] = {
            **({"ContentType": content} if content else {}),
            "TrainingInputMode": "Pipe" if mode == "Pipe" else "File",
            "S3DistributionType": text(channel, "DataSource", "S3DataSource", "S3DataDistributionType")
            or "FullyReplicated",
            "RecordWrapperType": text(channel, "RecordWrapperType") or "None",
        }
    return found


def _places(native: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Named outputs have none: launch.py makes a folder for each and uploads it."""
    for _, channel in mappings(native, "InputDataConfig"):
        name = text(channel, "ChannelName")
        yield f"{_ROOT}/input/data/{name}", _OURS.get(name, f"data:{name}")
    if checkpoints := at(native, "CheckpointConfig"):
        yield (text(checkpoints, "LocalPath") or f"/{_ROOT}/checkpoints").strip("/"), "checkpoints"
    yield f"{_ROOT}/model", "model"
    yield f"{_ROOT}/output/data", "output"
    yield f"{_ROOT}/output/data/metrics", "metrics"
