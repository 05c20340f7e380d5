"""CLUSTER_SPEC in all its shapes, and folders as they are mounted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cloudtrain_launch.contracts.places import relocated
from cloudtrain_launch.errors import LaunchError
from tests.entrypoints.contracts.environments import read

TWO = {"workerpool0": ["a:2222"], "workerpool1": ["b:2222"]}


def _spec(cluster: object = TWO, task: object = {"type": "workerpool1", "index": 0}) -> str:
    return json.dumps({"cluster": cluster, "task": task})


@pytest.mark.parametrize("pool", ["workerpool2", "workerpool3", "chief", None])
def test_a_replica_that_is_not_to_train(pool: str | None, tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=f"this replica is in {pool!r}, and only workerpool0 and workerpool1"):
        read("vertex-2", tmp_path, CLUSTER_SPEC=_spec(task={"type": pool, "index": 0}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "CLUSTER_SPEC is not JSON: "),
        ("[" * 200_000, "CLUSTER_SPEC is not JSON: maximum recursion"),
        ("[]", "CLUSTER_SPEC is a JSON list, not an object"),
        (_spec(cluster=["a:2222"]), "CLUSTER_SPEC: cluster must be an object of worker pools, not \\['a:2222'\\]"),
        (_spec(cluster={"workerpool1": ["a:2222"]}), "cluster has no workerpool0; it has workerpool1"),
        (_spec(cluster={"workerpool0": "a:2222"}), "cluster.workerpool0 must be a list of names"),
        (_spec(cluster={"workerpool0": [1]}), "cluster.workerpool0 must be a list of names"),
        (_spec(cluster={**TWO, "workerpool1": ["b:2222", "b:2222"]}), "cluster.workerpool1 names b:2222 twice"),
        (_spec(cluster={**TWO, "workerpool0": ["a:http"]}), "CLUSTER_SPEC: 'a:http' is not host:port"),
        (_spec(cluster={**TWO, "workerpool0": [":2222"]}), "CLUSTER_SPEC: ':2222' is not host:port"),
        (_spec(task=None), "CLUSTER_SPEC: task must say which replica this is, not None"),
        (_spec(task="workerpool0"), "CLUSTER_SPEC: task must say which replica this is, not 'workerpool0'"),
        (_spec(task={"type": "workerpool1"}), "task.index is None, workerpool1 has 1 replicas"),
        (_spec(task={"type": "workerpool1", "index": 1}), "task.index is 1, workerpool1 has 1 replicas"),
        (_spec(task={"type": "workerpool1", "index": -1}), "task.index is -1, workerpool1 has 1 replicas"),
        (_spec(task={"type": "workerpool1", "index": "9" * 5000}), "task.index is not a whole number: '999"),
        (_spec(cluster={**TWO, "workerpool0": ["a:99999"]}), "the port of a is 99999, a port is from 1 to 65535"),
        (_spec(cluster={**TWO, "workerpool0": ["a:" + "9" * 5000]}), "the port of a is not a whole number: '999"),
        (_spec(cluster={**TWO, "workerpool0": ["a\0"]}), "CLUSTER_SPEC holds what no variable or path can: a NUL"),
        (_spec(cluster={**TWO, "\ud800": ["a"]}), "CLUSTER_SPEC holds what no variable or path can: "),
    ],
)
def test_a_broken_cluster_spec(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=message):
        read("vertex-2", tmp_path, CLUSTER_SPEC=text)


@pytest.mark.parametrize("index", [0, "0"])
def test_an_index_may_be_text(index: object, tmp_path: Path) -> None:
    assert read("vertex-2", tmp_path, CLUSTER_SPEC=_spec(task={"type": "workerpool1", "index": index})).node == 1


def test_a_cluster_of_one_without_a_task(tmp_path: Path) -> None:
    text = _spec(cluster={"workerpool0": ["a:2222"]}, task=None)
    assert read("vertex-1", tmp_path, CLUSTER_SPEC=text).hosts == ("a",)


def test_folders(tmp_path: Path) -> None:
    cluster = read(
        "vertex-2", tmp_path, CLOUDTRAIN_OUTPUT_M="gs://b/m", CLOUDTRAIN_DATA_NFS="/mnt/nfs/x",
        CLOUDTRAIN_DATA_BUCKET="gs://whole-bucket/", CLOUDTRAIN_DATA_MOUNTED="/gcs/b/x",
    )  # fmt: skip
    assert cluster.folders == {
        "CLOUDTRAIN_CHECKPOINT_DIR": "/gcs/b/r/checkpoints",
        "CLOUDTRAIN_MODEL_DIR": "/gcs/b/r/model",
        "CLOUDTRAIN_OUTPUT_DIR": "/gcs/b/r/output",
        "CLOUDTRAIN_DATA_TRAIN": "/gcs/data/digits",
        "CLOUDTRAIN_DATA_NFS": "/mnt/nfs/x",
        "CLOUDTRAIN_DATA_BUCKET": "/gcs/whole-bucket",
        "CLOUDTRAIN_DATA_MOUNTED": "/gcs/b/x",
        "CLOUDTRAIN_OUTPUT_M": "/gcs/b/m",
    }
    assert cluster.deliveries == {"CLOUDTRAIN_METRICS_DIR": "/gcs/b/r/metrics"}
    assert cluster.store_by_address


def test_folders_of_a_simulated_mount(tmp_path: Path) -> None:
    cluster = read("vertex-2", tmp_path, CLOUDTRAIN_GCS_ROOT="/sim/gcs/", CLOUDTRAIN_DATA_MOUNTED="/gcs/b/x")
    assert cluster.folders["CLOUDTRAIN_DATA_TRAIN"] == "/sim/gcs/data/digits"
    assert cluster.folders["CLOUDTRAIN_DATA_MOUNTED"] == "/sim/gcs/b/x"
    assert cluster.deliveries == {"CLOUDTRAIN_METRICS_DIR": "/sim/gcs/b/r/metrics"}


def test_the_launchers_own_paths_are_moved_along() -> None:
    env = {
        "CLOUDTRAIN_GCS_ROOT": "/sim",
        "CLOUDTRAIN_SPEC": "/gcs/b/spec.json",
        "CLOUDTRAIN_CODE": "/gcsx/c",
        "A": "/gcs",
    }
    assert relocated(env) == {**env, "CLOUDTRAIN_SPEC": "/sim/b/spec.json"}
    env = {"CLOUDTRAIN_SM_ROOT": "/n1", "CLOUDTRAIN_SPEC": "/opt/ml/input/data/cloudtrain_spec/spec.json"}
    assert relocated(env)["CLOUDTRAIN_SPEC"] == "/n1/input/data/cloudtrain_spec/spec.json"
    assert relocated({"CLOUDTRAIN_SPEC": "/opt/ml/x"}) == {"CLOUDTRAIN_SPEC": "/opt/ml/x"}


def test_metrics_lie_below_the_output_if_nothing_is_said(tmp_path: Path) -> None:
    cluster = read("vertex-2", tmp_path, CLOUDTRAIN_METRICS_DIR=None)
    assert cluster.deliveries == {"CLOUDTRAIN_METRICS_DIR": "/gcs/b/r/output/metrics"}


@pytest.mark.parametrize("name", ["CLOUDTRAIN_CHECKPOINT_DIR", "CLOUDTRAIN_MODEL_DIR", "CLOUDTRAIN_OUTPUT_DIR"])
def test_a_folder_that_is_not_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=f"{name} is not set"):
        read("vertex-2", tmp_path, **{name: None})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("s3://b/p", "CLOUDTRAIN_DATA_X must be gs://bucket/path or an absolute path, not 's3://b/p'"),
        ("data/x", "CLOUDTRAIN_DATA_X must be gs://bucket/path or an absolute path, not 'data/x'"),
        ("gs:///p", "CLOUDTRAIN_DATA_X names no bucket: 'gs:///p'"),
    ],
)
def test_folders_that_are_none(value: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=message):
        read("vertex-2", tmp_path, CLOUDTRAIN_DATA_X=value)


def test_scripts_are_told_what_vertex_tells(tmp_path: Path) -> None:
    assert read("vertex-2", tmp_path).variables == {
        "AIP_MODEL_DIR": "gs://b/r/model/",
        "AIP_CHECKPOINT_DIR": "gs://b/r/checkpoints/",
        "AIP_TENSORBOARD_LOG_DIR": "gs://b/r/logs/",
        "CLOUD_ML_PROJECT_ID": "123456789012",
    }
