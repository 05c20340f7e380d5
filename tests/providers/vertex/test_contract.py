"""What a replica finds, by the fact sheet; and the launcher reads it as it was meant."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cloudtrain.providers import registry
from cloudtrain.providers.base import NodeContract, Request
from cloudtrain_launch.contracts import vertex as resolver
from cloudtrain_launch.spec import LaunchSpec
from tests.providers.vertex.jobs import CPU, GPU, requested

HOST = re.compile(r"cmle-training-workerpool[01]-[0-9a-f]{10}-[0-9]+:2222")
SPEC = LaunchSpec(run_id="r", kind="entry", target="t.py", processes_per_node=1)
NODE_LEVEL = ("TF_CONFIG", "MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")


def contracts(request: Request) -> list[NodeContract]:
    return [registry.node_contract(request, node) for node in range(request.spec["nodes"])]


def test_cluster_spec_names_every_replica_and_this_one() -> None:
    specs = [json.loads(contract.env["CLUSTER_SPEC"]) for contract in contracts(requested(GPU))]
    assert all(spec["cluster"] == specs[0]["cluster"] for spec in specs)
    cluster = specs[0]["cluster"]
    assert {name: len(hosts) for name, hosts in cluster.items()} == {"workerpool0": 1, "workerpool1": 2}
    assert all(HOST.fullmatch(host) for hosts in cluster.values() for host in hosts)
    tasks = [(spec["task"]["type"], spec["task"]["index"]) for spec in specs]
    assert tasks == [("workerpool0", 0), ("workerpool1", 0), ("workerpool1", 1)]
    assert specs[0]["environment"] == "cloud"
    assert json.loads(specs[0]["job"]) == {"python_module": "", "package_uris": [], "job_args": []}


def test_several_replicas_are_told_ranks_of_nodes() -> None:
    found = contracts(requested(GPU))
    assert [contract.env["RANK"] for contract in found] == ["0", "1", "2"]
    assert {contract.env["WORLD_SIZE"] for contract in found} == {"3"}
    chief = json.loads(found[0].env["CLUSTER_SPEC"])["cluster"]["workerpool0"][0]
    assert {contract.env["MASTER_ADDR"] for contract in found} == {chief.partition(":")[0]}
    tensorflow = json.loads(found[2].env["TF_CONFIG"])
    assert tensorflow["cluster"]["chief"] == [chief]
    assert (tensorflow["task"]["type"], tensorflow["task"]["index"]) == ("worker", 1)
    service = chief.partition(":")[0].upper().replace("-", "_")
    assert found[1].env[f"{service}_SERVICE_PORT"] == "2222"


def test_one_replica_is_told_none_of_that() -> None:
    (contract,) = contracts(requested(CPU))
    assert not set(NODE_LEVEL) & set(contract.env)
    assert list(json.loads(contract.env["CLUSTER_SPEC"])["cluster"]) == ["workerpool0"]


def test_the_services_own_variables() -> None:
    request = requested(CPU, {"network": "projects/123456/global/networks/n"})
    env = registry.node_contract(request, 0).env
    base = request.native["jobSpec"]["baseOutputDirectory"]["outputUriPrefix"]
    assert env["AIP_MODEL_DIR"] == f"{base}model/"
    assert env["AIP_CHECKPOINT_DIR"] == f"{base}checkpoints/"
    assert env["AIP_TENSORBOARD_LOG_DIR"] == f"{base}logs/"
    assert env["CLOUD_ML_PROJECT_ID"] == "123456"
    assert env["CLOUD_ML_JOB_ID"].isdecimal()


def test_the_container_finds_values_as_the_job_has_them() -> None:
    values = {"A": "$(RANK) $$ $HOME", "B": "${data.x} $(A)", "C": ""}
    request = requested(CPU, environment={"env": values}, data={"x": {"uri": "gs://data/x"}})
    env = registry.node_contract(request, 0).env
    assert {name: env[name] for name in values} == values


def test_overrides_may_use_references() -> None:
    """In native fields nothing is escaped: ``$(NAME)`` is the service's to put in."""
    request = requested(CPU)
    env = request.native["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["env"]
    env += [{"name": "X", "value": "$(CLOUD_ML_JOB_ID)/$(CLOUDTRAIN_ATTEMPT)/$(NOPE)/$$(X)"}]
    found = registry.node_contract(request, 0).env
    assert found["X"] == f"{found['CLOUD_ML_JOB_ID']}/1/$(NOPE)/$(X)"


def test_places_lie_under_the_mounted_buckets() -> None:
    request = requested(CPU, data={"train": {"uri": "gs://data/a/b/"}}, outputs={"plots": "gs://out/p"})
    contract = registry.node_contract(request, 0)
    code = next(ship.to for ship in request.ships if ship.kind == "code")
    run = request.native["jobSpec"]["baseOutputDirectory"]["outputUriPrefix"].replace("gs://", "gcs/")
    assert contract.places == {
        f"gcs/{code[5:].rstrip('/')}": "code",
        f"{run}spec": "spec",
        "gcs/data/a/b": "data:train",
        "gcs/out/p": "output:plots",
        f"{run}checkpoints": "checkpoints",
        f"{run}model": "model",
        f"{run}output": "output",
        f"{run}metrics": "metrics",
    }
    assert contract.env["CLOUDTRAIN_GCS_ROOT"] == "{root}/gcs"
    assert contract.env["CLOUDTRAIN_SPEC"] == f"{{root}}/{run}spec/spec.json"


@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_the_launcher_reads_it_as_it_was_meant(nodes: int, tmp_path: Path) -> None:
    request = requested(CPU, resources={"nodes": nodes}, data={"train": {"uri": "gs://data/a"}})
    clusters = []
    for contract in contracts(request):
        env = {name: value.replace("{root}", str(tmp_path)) for name, value in contract.env.items()}
        clusters.append(resolver.resolve(env, SPEC))
    assert [cluster.node for cluster in clusters] == list(range(nodes))
    assert {cluster.hosts for cluster in clusters} == {clusters[0].hosts}
    assert len(clusters[0].hosts) == nodes
    assert clusters[0].port == 2222
    assert clusters[0].folders["CLOUDTRAIN_DATA_TRAIN"] == str(tmp_path / "gcs/data/a")
    place = clusters[0].folders["CLOUDTRAIN_CHECKPOINT_DIR"]
    assert str(Path(place).relative_to(tmp_path)) in contracts(request)[0].places


def test_there_are_only_so_many_nodes() -> None:
    with pytest.raises(IndexError):
        registry.node_contract(requested(GPU), 3)
