"""Azure ML's variables: the fallbacks one by one, everything that contradicts itself, and nothing guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloudtrain_launch.cluster import resolve
from cloudtrain_launch.errors import LaunchError
from tests.entrypoints.contracts.environments import load, read, spec

NONE_OF_THE_SIX = dict.fromkeys(["MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "RANK", "LOCAL_RANK", "WORLD_SIZE"])
BATCH = {"AZ_BATCHAI_JOB_MASTER_NODE_IP": "10.0.0.9"}


@pytest.mark.parametrize(
    ("changed", "node", "head"),
    [
        ({"NODE_RANK": "0"}, 0, "10.0.0.4"),
        ({"NODE_RANK": None, "AZUREML_CR_NODE_RANK": "0", "OMPI_COMM_WORLD_RANK": "1"}, 0, "10.0.0.4"),
        ({"NODE_RANK": None, "OMPI_COMM_WORLD_RANK": "0", "AZ_BATCHAI_TASK_INDEX": "1"}, 0, "10.0.0.4"),
        ({"NODE_RANK": None, "AZ_BATCHAI_TASK_INDEX": "0"}, 0, "10.0.0.4"),
        ({"MASTER_ADDR": None, "AZ_BATCH_MASTER_NODE": "10.0.0.7:6000", **BATCH}, 1, "10.0.0.7"),
        ({"MASTER_ADDR": None, "AZ_BATCH_HOST_LIST": "10.0.0.8, 10.0.0.5", **BATCH}, 1, "10.0.0.8"),
        ({"MASTER_ADDR": None, **BATCH}, 1, "10.0.0.9"),
    ],
)
def test_fallbacks_in_their_order(changed: dict[str, str | None], node: int, head: str, tmp_path: Path) -> None:
    cluster = read("azureml-2", tmp_path, **changed)
    assert (cluster.node, cluster.hosts) == (node, (head, "node-1"))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"NODE_RANK": None}, "nothing says which of 2 nodes this is: none of NODE_RANK, AZUREML_CR_NODE_RANK, "),
        ({"NODE_RANK": None, "OMPI_COMM_WORLD_NODE_RANK": "1"}, "nothing says which of 2 nodes this is"),
        ({"NODE_RANK": "2"}, "NODE_RANK is 2, but the job has 2 nodes"),
        ({"NODE_RANK": "-1"}, "NODE_RANK is -1, but the job has 2 nodes"),
        ({"NODE_RANK": "one"}, "NODE_RANK is not a whole number: 'one'"),
        ({"MASTER_ADDR": None}, "nothing says where node 0 is: none of MASTER_ADDR, AZ_BATCH_MASTER_NODE, "),
        ({"MASTER_ADDR": None, "AZ_BATCHAI_MPI_MASTER_NODE": "localhost"}, "nothing says where node 0 is"),
        ({"MASTER_PORT": "99999"}, "MASTER_PORT is 99999, a port is from 1 to 65535"),
        ({"WORLD_SIZE": "4"}, "the spec's nodes is 2, but WORLD_SIZE says 4; Azure must start one process per node"),
        ({"AZUREML_NODE_COUNT": "3"}, "the spec's nodes is 2, but AZUREML_NODE_COUNT says 3"),
        ({"LOCAL_RANK": "1"}, "LOCAL_RANK is '1': Azure started several processes on this node"),
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "8"}, "OMPI_COMM_WORLD_LOCAL_SIZE is '8': Azure started several processes"),
        ({"CLOUDTRAIN_MODEL_DIR": None}, "CLOUDTRAIN_MODEL_DIR is not set"),
        ({"CLOUDTRAIN_DATA_TRAIN": "${{inputs.train}}"}, "CLOUDTRAIN_DATA_TRAIN is '.*': Azure has not put the folder"),
        ({"CLOUDTRAIN_DATA_TRAIN": "azureml://datastores/d/paths/p"}, "CLOUDTRAIN_DATA_TRAIN is 'azureml://"),
    ],
)
def test_nothing_is_guessed(changed: dict[str, str | None], message: str, tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=message):
        read("azureml-2", tmp_path, **changed)


@pytest.mark.parametrize(
    ("env", "nodes"),
    [({"AZUREML_NODE_COUNT": "2"}, 2), ({"WORLD_SIZE": "2"}, 2), ({"AZ_BATCH_HOST_LIST": "10.0.0.4,10.0.0.5"}, 2)],
)
def test_a_spec_that_does_not_say_how_many(env: dict[str, str], nodes: int) -> None:
    record = load("azureml-2")["env"]
    left = {key: value for key, value in record.items() if key != "WORLD_SIZE"}
    assert resolve({"CLOUDTRAIN_PROVIDER": "azureml", **left, **env}, spec()).nodes == nodes
    with pytest.raises(LaunchError, match="nothing says how many nodes the job has"):
        resolve({"CLOUDTRAIN_PROVIDER": "azureml", **left}, spec())


def test_two_nodes_are_never_taken_for_one(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="nothing says which of 2 nodes this is"):
        read("azureml-2", tmp_path, **NONE_OF_THE_SIX)


def test_what_mlflow_needs_is_kept_and_what_misleads_is_not(tmp_path: Path) -> None:
    variables = read("azureml-2", tmp_path).variables
    assert variables["AZUREML_RUN_TOKEN"] == "t0ken"
    assert "AZUREML_ARM_WORKSPACE_NAME" in variables
    assert "AZUREML_EXPERIMENT_ID" not in variables
