"""Every recorded environment, and what holds for all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloudtrain_launch.cluster import resolve
from cloudtrain_launch.errors import LaunchError
from tests.entrypoints.contracts import environments
from tests.entrypoints.contracts.environments import RECORDED, load, read

NAMES = [path.stem for path in RECORDED]


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_environment(name: str, tmp_path: Path) -> None:
    cluster = read(name, tmp_path)
    assert cluster.provider == name.partition("-")[0]
    seen = {
        "node": cluster.node,
        "hosts": list(cluster.hosts),
        "port": cluster.port,
        "interface": cluster.interface,
    }
    assert seen == load(name)["expected"]


ONLY_THE_SPEC_SAYS_HOW_MANY = {"azureml-1", "azureml-batchai", "azureml-mpi"}


@pytest.mark.parametrize("name", sorted({*NAMES} - ONLY_THE_SPEC_SAYS_HOW_MANY))
def test_the_number_of_nodes_must_be_the_specs(name: str, tmp_path: Path) -> None:
    record = load(name)
    env = {"CLOUDTRAIN_PROVIDER": name.partition("-")[0], **record["env"]}
    env["CLOUDTRAIN_SM_ROOT"] = str(environments.opt_ml(tmp_path, record["files"]))
    right, wrong = record["nodes"], record["nodes"] + 1
    message = rf"asks for {wrong} nodes, but .* names {right}$|nodes is {wrong}, but \w+ says {right}\b"
    with pytest.raises(LaunchError, match=message):
        resolve(env, environments.spec(wrong))


@pytest.mark.parametrize("name", NAMES)
def test_what_a_simulation_sets_beside_it(name: str, tmp_path: Path) -> None:
    host = load(name)["expected"]["hosts"][0]
    cluster = read(
        name, tmp_path, CLOUDTRAIN_PORT="4321", CLOUDTRAIN_TOKEN="t", CLOUDTRAIN_NODE_DEVICE="cpu",
        CLOUDTRAIN_LISTEN_FD="7", CLOUDTRAIN_HOSTMAP=f"{host}=127.0.0.9,elsewhere=10.0.0.1",
    )  # fmt: skip
    assert (cluster.port, cluster.token, cluster.device, cluster.listen_fd) == (4321, "t", "cpu", 7)
    assert (cluster.head, cluster.address_of("x")) == ("127.0.0.9", "x")


@pytest.mark.parametrize("given", ["algo-1", "algo-1=", "=127.0.0.1"])
def test_a_host_map_that_is_none(given: str, tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=r"CLOUDTRAIN_HOSTMAP is '.*'; it is a list of name=address"):
        read("vertex-2", tmp_path, CLOUDTRAIN_HOSTMAP=given)
