"""What a node finds: the files of AWS's contract, read by AWS's own code and by our launcher's."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cloudtrain.providers import registry
from cloudtrain.providers.base import NodeContract
from cloudtrain_launch.contracts import sagemaker as resolver
from cloudtrain_launch.spec import LaunchSpec
from tests.local.project import require
from tests.providers.sagemaker.jobs import GPU, request_of

RESOURCES = "opt/ml/input/config/resourceconfig.json"
CHANNELS = "opt/ml/input/config/inputdataconfig.json"
DATA = {
    "train": {"uri": "s3://bucket/t/", "mode": "mount", "shard": "by-object"},
    "val": {"uri": "s3://bucket/v/"},
}


def contract(node: int, **changes: Any) -> NodeContract:
    return registry.node_contract(request_of(GPU, **changes), node)


def test_files_have_the_keys_that_real_ones_have() -> None:
    """resourceconfig.json as logged by real jobs; FastFile is told as File (AWS's guide)."""
    found = {Path(name).name: json.loads(text) for name, text in contract(1, data=DATA).files.items()}
    assert found["resourceconfig.json"] == {
        "current_host": "algo-2",
        "current_instance_type": "ml.p4de.24xlarge",
        "current_group_name": "homogeneousCluster",
        "hosts": ["algo-1", "algo-2"],
        "instance_groups": [
            {
                "instance_group_name": "homogeneousCluster",
                "instance_type": "ml.p4de.24xlarge",
                "hosts": ["algo-2", "algo-1"],
            }
        ],
        "network_interface_name": "eth0",
    }
    assert found["inputdataconfig.json"]["train"] == {
        "TrainingInputMode": "File",
        "S3DistributionType": "ShardedByS3Key",
        "RecordWrapperType": "None",
    }
    assert found["inputdataconfig.json"]["val"]["S3DistributionType"] == "FullyReplicated"
    assert list(found["inputdataconfig.json"]) == ["cloudtrain_code", "cloudtrain_spec", "train", "val"]
    assert found["hyperparameters.json"] == {}
    assert found["checkpointconfig.json"]["LocalPath"] == "/opt/ml/checkpoints"


def test_hosts_are_in_the_order_of_letters() -> None:
    hosts = json.loads(contract(0, resources={"nodes": 12}).files[RESOURCES])["hosts"]
    assert hosts[:4] == ["algo-1", "algo-10", "algo-11", "algo-12"] and hosts[-1] == "algo-9"


def test_variables_are_the_requests_and_the_platforms() -> None:
    request = request_of(GPU, environment={"env": {"MINE": "x"}})
    env = registry.node_contract(request, 0).env
    assert request.native["Environment"].items() <= env.items()
    assert env["TRAINING_JOB_NAME"] == request.name
    assert env["TRAINING_JOB_ARN"] == f"arn:aws:sagemaker:eu-west-1:111122223333:training-job/{request.name}"
    assert env["AWS_REGION"] == "eu-west-1"
    assert not [name for name in env if name.startswith("SM_")]  # set by AWS's toolkit alone, which does not run


def test_warm_pools_and_groups_come_through_overrides() -> None:
    warm = contract(0, overrides={"sagemaker": {"ResourceConfig": {"KeepAlivePeriodInSeconds": 600}}})
    assert warm.env["SAGEMAKER_MANAGED_WARMPOOL_CACHE_DIRECTORY"] == "{root}/opt/ml/sagemaker/warmpoolcache"
    groups = [
        {"InstanceGroupName": "a", "InstanceType": "ml.p4d.24xlarge", "InstanceCount": 1},
        {"InstanceGroupName": "b", "InstanceType": "ml.p4de.24xlarge", "InstanceCount": 2},
    ]
    changed = {"ResourceConfig": {"InstanceType": None, "InstanceCount": None, "InstanceGroups": groups}}
    contracts = contract(2, resources={"nodes": 3}, overrides={"sagemaker": changed})
    found = json.loads(contracts.files[RESOURCES])
    assert (found["current_host"], found["current_group_name"]) == ("algo-3", "b")
    assert found["current_instance_type"] == "ml.p4de.24xlarge"
    assert [sorted(group["hosts"]) for group in found["instance_groups"]] == [["algo-1"], ["algo-2", "algo-3"]]


def test_places_are_those_of_aws() -> None:
    places = contract(0, data=DATA, outputs={"report": "s3://bucket/r/"}).places
    assert places == {
        "opt/ml/input/data/cloudtrain_code": "code",
        "opt/ml/input/data/cloudtrain_spec": "spec",
        "opt/ml/input/data/train": "data:train",
        "opt/ml/input/data/val": "data:val",
        "opt/ml/checkpoints": "checkpoints",
        "opt/ml/model": "model",
        "opt/ml/output/data": "output",
        "opt/ml/output/data/metrics": "metrics",
    }


@pytest.mark.parametrize("node", [0, 1, 8, 9, 10, 11])
def test_our_launcher_finds_the_node_and_its_folders(tmp_path: Path, node: int) -> None:
    root = str(tmp_path)
    given = contract(node, resources={"nodes": 12}, data=DATA, outputs={"report": "s3://bucket/r/"})
    written(tmp_path, given)
    env = {name: value.replace("{root}", root) for name, value in given.env.items()}
    spec = LaunchSpec(run_id="r", kind="entry", target="t.py", processes_per_node=8)
    cluster = resolver.resolve(env, spec)
    assert (cluster.node, cluster.nodes, cluster.port) == (node, 12, 7777)
    assert cluster.hosts[9] == "algo-10"
    assert cluster.folders["CLOUDTRAIN_DATA_TRAIN"] == f"{root}/opt/ml/input/data/train"
    assert cluster.folders["CLOUDTRAIN_CHECKPOINT_DIR"] == f"{root}/opt/ml/checkpoints"
    for name, place in {"MODEL": "model", "OUTPUT": "output", "METRICS": "metrics"}.items():
        folder = Path(cluster.folders[f"CLOUDTRAIN_{name}_DIR"]).relative_to(root).as_posix()
        assert given.places[folder] == place


READ_BY_AWS = """
import json, logging
logging.disable(logging.CRITICAL)
from sagemaker_training.environment import Environment
print(json.dumps(Environment().to_env_vars()))
"""


@pytest.mark.parametrize("node", [0, 2])
def test_awss_own_toolkit_takes_the_files(tmp_path: Path, node: int) -> None:
    """The program behind ``train`` in AWS's images; what it understood it gives to scripts as variables."""
    require(_installed("sagemaker_training"), "needs the package sagemaker-training")
    given = contract(node, resources={"nodes": 3}, data=DATA)
    written(tmp_path, given)
    root = tmp_path / "opt/ml"
    env = {**os.environ, "SAGEMAKER_BASE_DIR": str(root), "TRAINING_JOB_NAME": given.env["TRAINING_JOB_NAME"]}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", READ_BY_AWS],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert json.loads(said["SM_HOSTS"]) == ["algo-1", "algo-2", "algo-3"]
    assert said["SM_CURRENT_HOST"] == f"algo-{node + 1}"
    assert said["SM_CURRENT_INSTANCE_TYPE"] == "ml.p4de.24xlarge"
    assert said["SM_CHANNEL_TRAIN"] == f"{root}/input/data/train"
    assert said["SM_NETWORK_INTERFACE_NAME"] == "eth0"


def written(folder: Path, given: NodeContract) -> None:
    for name, text in given.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
