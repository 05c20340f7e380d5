"""What a node finds: the variables of the fact sheet, and the launcher's own resolver agrees on every node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cloudtrain.providers import registry
from cloudtrain.providers.base import NodeContract, Request
from cloudtrain_launch.cluster import resolve
from cloudtrain_launch.spec import LaunchSpec
from tests.providers.azureml.jobs import DATASTORE, TRAIN, request

NODES = 3
FOUR = {"CLOUDTRAIN_CHECKPOINT_DIR": "checkpoints", "CLOUDTRAIN_MODEL_DIR": "model",
        "CLOUDTRAIN_OUTPUT_DIR": "output", "CLOUDTRAIN_METRICS_DIR": "metrics"}  # fmt: skip


def _request(**fields: Any) -> Request:
    return request(**{"resources": {"nodes": NODES}, "data": TRAIN, "outputs": {"preds": f"{DATASTORE}p/"}, **fields})


def _contracts(made: Request, nodes: int = NODES) -> list[NodeContract]:
    return [registry.node_contract(made, node) for node in range(nodes)]


def test_several_nodes_have_the_documented_six() -> None:
    for node, contract in enumerate(_contracts(_request())):
        env = contract.env
        assert env["MASTER_PORT"] == "6105"
        assert env["MASTER_ADDR"] == _contracts(_request())[0].env["MASTER_ADDR"]
        assert (env["WORLD_SIZE"], env["NODE_RANK"], env["RANK"], env["LOCAL_RANK"]) == ("3", str(node), str(node), "0")


def test_one_node_has_none_of_them() -> None:
    env = registry.node_contract(_request(resources={"nodes": 1}), 0).env
    ranks = {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "NODE_RANK", "RANK", "LOCAL_RANK", "AZUREML_NODE_COUNT"}
    assert not ranks & set(env)


def test_the_platforms_own_variables() -> None:
    made = _request(spot={"enabled": True})
    env = registry.node_contract(made, 1).env
    assert env["AZUREML_RUN_ID"] == env["AZUREML_ROOT_RUN_ID"] == made.name
    assert env["AZUREML_ARM_WORKSPACE_NAME"] == "my-workspace"
    assert "AZUREML_RUN_TOKEN" in env
    assert json.loads(env["AZUREML_CR_COMPUTE_CONTEXT"])["vm_priority"] == "LowPriority"
    assert env["AZURE_ML_INPUT_train"] == env["AZUREML_DATAREFERENCE_train"] == env["CLOUDTRAIN_DATA_TRAIN"]
    assert env["AZURE_ML_OUTPUT_preds"] == env["preds"] == env["CLOUDTRAIN_OUTPUT_PREDS"]


def test_folders_are_paths_of_the_node_and_each_is_a_place() -> None:
    contract = registry.node_contract(_request(), 0)
    wanted = {**FOUR, "CLOUDTRAIN_DATA_TRAIN": "data:train", "CLOUDTRAIN_OUTPUT_PREDS": "output:preds"}
    found = {name: contract.places[contract.env[name].removeprefix("{root}/")] for name in wanted}
    assert found == wanted


def test_the_working_directory_holds_the_code_and_an_input_the_spec() -> None:
    contract = registry.node_contract(_request(), 0)
    work = contract.env["AZUREML_CR_EXECUTION_WORKING_DIR_PATH"].removeprefix("{root}/")
    assert contract.places[work] == "code"
    folder, _, name = contract.env["CLOUDTRAIN_SPEC"].removeprefix("{root}/").rpartition("/")
    assert (contract.places[folder], name) == ("spec", "spec.json")
    assert f"{{root}}/{folder}" == contract.env["AZURE_ML_INPUT_cloudtrain_spec"]


def test_what_an_override_puts_before_the_command_changes_no_folder() -> None:
    plain = _request()
    made = _request(overrides={"azureml": {"command": f"nvidia-smi; {plain.native['command']}"}})
    one, two = registry.node_contract(plain, 0).env, registry.node_contract(made, 0).env
    assert [one[name].replace(plain.name, made.name) for name in FOUR] == [two[name] for name in FOUR]


def test_the_requests_variables_are_there_as_they_are() -> None:
    made = _request(environment={"env": {"SEED": "007"}})
    env = registry.node_contract(made, 2).env
    assert made.native["environment_variables"].items() <= env.items()


@pytest.mark.parametrize("distribution", ["pytorch", "mpi"])
def test_the_launcher_finds_every_node(tmp_path: Path, distribution: str) -> None:
    made = _request(overrides={"azureml": {"distribution": {"type": distribution}}})
    (tmp_path / "spec.json").write_text(json.dumps(made.spec))
    spec = LaunchSpec.load(str(tmp_path / "spec.json"))
    for node, contract in enumerate(_contracts(made)):
        env = {name: value.replace("{root}", "/node") for name, value in contract.env.items()}
        cluster = resolve(env, spec)
        assert (cluster.node, cluster.nodes, cluster.port) == (node, NODES, 6105)
        assert cluster.head == contract.env.get("MASTER_ADDR", cluster.head)
        assert set(FOUR) - {"CLOUDTRAIN_METRICS_DIR"} <= set(cluster.folders)
        # Object stores take no appending: metrics are kept on the node and brought there at the end.
        assert cluster.deliveries == {"CLOUDTRAIN_METRICS_DIR": env["CLOUDTRAIN_METRICS_DIR"]}
