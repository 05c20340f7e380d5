"""SageMaker's files: folders, what scripts expect, agreement with AWS's own toolkit, and files that are wrong."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cloudtrain_launch.cluster import Cluster, resolve
from cloudtrain_launch.contracts.sagemaker import in_rank_order
from cloudtrain_launch.errors import LaunchError
from tests.entrypoints.contracts.environments import load, opt_ml, read, spec
from tests.local.project import require

NAMES = ["sagemaker-1", "sagemaker-2", "sagemaker-12", "sagemaker-old", "sagemaker-names"]

# Prints what the toolkit makes of the files below SAGEMAKER_BASE_DIR.
TOOLKIT = """
import json, logging
logging.disable(logging.CRITICAL)
from sagemaker_training.environment import Environment
env = Environment()
print(json.dumps({
    "hosts": env.hosts, "current": env.current_host, "interface": env.network_interface_name,
    "channels": env.channel_input_dirs, "hyperparameters": env.hyperparameters, "variables": env.to_env_vars(),
}))
"""


def _toolkit(root: Path) -> dict[str, Any]:
    env = {**os.environ, "SAGEMAKER_BASE_DIR": str(root), "PYTHONWARNINGS": "ignore"}
    ran = subprocess.run([sys.executable, "-c", TOOLKIT], env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    answer: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return answer


@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_awss_own_toolkit(name: str, tmp_path: Path) -> None:
    require(importlib.util.find_spec("sagemaker_training") is not None, "sagemaker-training is not installed")
    record = load(name)
    if name == "sagemaker-old":  # what the toolkit does not do without
        record["files"]["input/config/resourceconfig.json"]["network_interface_name"] = "eth0"
    theirs = _toolkit(opt_ml(tmp_path, record["files"]))
    ours = read(name, tmp_path)
    assert sorted(ours.hosts) == sorted(theirs["hosts"])
    assert (ours.hosts[ours.node], ours.interface) == (theirs["current"], theirs["interface"])
    expected = theirs["variables"]
    for variable, value in ours.variables.items():
        if variable == "SM_HOSTS":  # in rank order here
            assert sorted(json.loads(value)) == sorted(json.loads(expected[variable]))
        elif variable == "SM_HPS":
            assert json.loads(value) == json.loads(expected[variable])
        elif variable.startswith("SM_"):
            assert value == expected[variable], variable
    channels = {key for key in ours.variables if key.startswith("SM_CHANNEL_")}
    assert channels == {key for key in expected if key.startswith("SM_CHANNEL_") and "CLOUDTRAIN" not in key}


def test_folders_and_variables(tmp_path: Path) -> None:
    cluster = read("sagemaker-2", tmp_path, CLOUDTRAIN_NODE_DEVICE="cpu")
    assert cluster.folders == {
        "CLOUDTRAIN_DATA_TRAIN": f"{tmp_path}/input/data/train",
        "CLOUDTRAIN_DATA_VALIDATION_2": f"{tmp_path}/input/data/Validation_2",
        "CLOUDTRAIN_CHECKPOINT_DIR": f"{tmp_path}/checkpoints",
        "CLOUDTRAIN_MODEL_DIR": f"{tmp_path}/model",
        "CLOUDTRAIN_OUTPUT_DIR": f"{tmp_path}/output/data",
        "CLOUDTRAIN_METRICS_DIR": f"{tmp_path}/output/data/metrics",
    }
    assert cluster.variables == {
        "NCCL_SOCKET_IFNAME": "eth0", "GLOO_SOCKET_IFNAME": "eth0", "TP_SOCKET_IFNAME": "eth0",
        "SM_MODEL_DIR": f"{tmp_path}/model", "SM_OUTPUT_DATA_DIR": f"{tmp_path}/output/data",
        "SM_CHANNEL_TRAIN": f"{tmp_path}/input/data/train",
        "SM_CHANNEL_VALIDATION_2": f"{tmp_path}/input/data/Validation_2",
        "SM_HOSTS": '["algo-1", "algo-2"]', "SM_CURRENT_HOST": "algo-2",
        "SM_NUM_GPUS": "0",
        "SM_HPS": json.dumps({"epochs": 5, "backend": "tcp", "lr": 0.05, "name": "digits", "flag": True,
                              "layers": [1, 2], "broken": "[1, 2"}),
    }  # fmt: skip


def test_without_a_root_of_its_own_it_is_opt_ml(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=r"cannot read /opt/ml/input/config/resourceconfig\.json: "):
        resolve({"CLOUDTRAIN_PROVIDER": "sagemaker"}, spec())


@pytest.mark.parametrize(
    ("local", "expected"), [("/opt/ml/checkpoints", "{}/checkpoints"), ("/opt/ml/mine/", "{}/mine"), ("/ck", "/ck")]
)
def test_checkpoints_lie_where_the_request_says(local: str, expected: str, tmp_path: Path) -> None:
    opt_ml(tmp_path, {"input/config/checkpointconfig.json": {"LocalPath": local, "S3Uri": "s3://b/c"}})
    folders = read("sagemaker-1", tmp_path).folders
    assert folders["CLOUDTRAIN_CHECKPOINT_DIR"] == expected.format(tmp_path)


def test_named_outputs_are_delivered(tmp_path: Path) -> None:
    given = {"CLOUDTRAIN_OUTPUT_METRICS": "s3://b/m/", "CLOUDTRAIN_OUTPUT_DIR": "s3://no/output"}
    cluster = read("sagemaker-1", tmp_path, **given)
    assert cluster.deliveries == {"CLOUDTRAIN_OUTPUT_METRICS": "s3://b/m/"}
    assert cluster.folders["CLOUDTRAIN_OUTPUT_DIR"] == f"{tmp_path}/output/data"


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        (["algo-10", "algo-2", "algo-1"], ["algo-1", "algo-2", "algo-10"]),
        (["algo-10", "algo-2", "other-1"], ["algo-10", "algo-2", "other-1"]),
        (["algo-2a", "algo-10"], ["algo-10", "algo-2a"]),
    ],
)
def test_rank_order(hosts: list[str], expected: list[str]) -> None:
    assert list(in_rank_order(hosts)) == list(in_rank_order(reversed(hosts))) == expected


RESOURCES = "input/config/resourceconfig.json"


def _wrong(tmp_path: Path, files: dict[str, object]) -> Cluster:
    root = opt_ml(tmp_path, {**load("sagemaker-2")["files"], **files})
    return resolve({"CLOUDTRAIN_PROVIDER": "sagemaker", "CLOUDTRAIN_SM_ROOT": str(root)}, spec())


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({RESOURCES: "{"}, "resourceconfig.json is not JSON: Expecting"),
        ({RESOURCES: []}, "resourceconfig.json is a JSON list, not an object"),
        ({RESOURCES: {}}, "resourceconfig.json: hosts must be a list of names with at least one, not None"),
        ({RESOURCES: {"hosts": []}}, "hosts must be a list of names with at least one, not \\[\\]"),
        ({RESOURCES: {"hosts": "algo-1"}}, "hosts must be a list of names with at least one, not 'algo-1'"),
        (
            {RESOURCES: {"hosts": ["algo-1", 2]}},
            "hosts must be a list of names with at least one, not \\['algo-1', 2\\]",
        ),
        ({RESOURCES: {"hosts": ["a", "a"], "current_host": "a"}}, "resourceconfig.json: hosts names a twice"),
        ({RESOURCES: {"hosts": ["algo-1"]}}, "current_host is None, which is not one of hosts: algo-1"),
        ({RESOURCES: {"hosts": ["algo-1"], "current_host": "aws"}}, "current_host is 'aws', which is not one of hosts"),
        ({"input/config/inputdataconfig.json": "x"}, "inputdataconfig.json is not JSON"),
        ({"input/config/hyperparameters.json": "[1]"}, "hyperparameters.json is a JSON list, not an object"),
    ],
)
def test_files_that_are_wrong(files: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=message):
        _wrong(tmp_path, files)
