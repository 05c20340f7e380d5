"""What Azure ML cannot do is refused at its field, with what would be right."""

from __future__ import annotations

from typing import Any

import pytest

from cloudtrain.spec.problems import JobFileError
from tests.providers.azureml.jobs import DATASTORE, TRAIN, request

SPOT = {"enabled": True}
_VARIABLES, _INPUTS = "overrides.azureml.environment_variables", "overrides.azureml.inputs"
CASES: list[tuple[dict[str, Any], str, str]] = [
    ({"resources": {"disk_gib": 200}}, "resources.disk_gib", "comes with its size"),
    ({"resources": {"nodes": 101}}, "resources.nodes", "at most 100"),
    (
        {"resources": {"nodes": 2, "instance": "Standard_NV6ads_A10_v5"}, "environment": {"image": "r.io/t:1"}},
        "resources.instance",
        "Standard_NV36ads_A10_v5 has a whole one",
    ),
    ({"resources": {"accelerator": "L4"}}, "resources.accelerator", "azureml has no L4"),
    ({"data": {"train": {**TRAIN["train"], "mode": "stream"}}}, "data.train.mode", "mode: mount"),
    ({"data": {"train": {"uri": "s3://b/train/"}}}, "data.train.uri", "azureml://datastores/NAME/paths/FOLDER"),
    ({"data": {"train": {"uri": {"azureml": "gs://b/t"}}}}, "data.train.uri.azureml", "azureml:ASSET:VERSION"),
    ({"data": {"train": {"uri": {"sagemaker": "s3://b/t"}}}}, "data.train.uri", "give data.train.uri.azureml"),
    ({"data": {"cloudtrain_checkpoint": TRAIN["train"]}}, "data.cloudtrain_checkpoint", "take another name"),
    ({"data": {"cloudtrain_spec": TRAIN["train"]}}, "data.cloudtrain_spec", "as the input does that cloudtrain adds"),
    ({"outputs": {"cloudtrain_model": f"{DATASTORE}m/"}}, "outputs.cloudtrain_model", "take another name"),
    ({"outputs": {"PATH": f"{DATASTORE}m/"}}, "outputs.PATH", "take another name"),
    ({"outputs": {"WORLD_SIZE": f"{DATASTORE}m/"}}, "outputs.WORLD_SIZE", "take another name"),
    ({"outputs": {"preds": "wasbs://c@a.blob.core.windows.net/p/"}}, "outputs.preds", "datastores only"),
    ({"checkpoint": {"uri": "s3://b/kept"}}, "checkpoint.uri", "datastores only"),
    ({"environment": {"env": {"A": "${{outputs.x}}"}}}, "environment.env.A", "in the command only"),
    ({"environment": {"image": "docker://x/y"}}, "environment.image", "neither a container image nor an environment"),
    ({"environment": {"image": "azureml:mine"}}, "environment.image", "azureml:NAME:VERSION"),
    ({"environment": {"secrets": {"K": {"azureml": "k"}}}}, "environment.secrets.K.azureml", "vault.azure.net/secrets"),
    ({"environment": {"secrets": {"K": {"vertex": "k"}}}}, "environment.secrets.K", "environment.secrets.K.azureml"),
    ({"limits": {"runtime": "22d"}}, "limits.runtime", "21 days"),
    ({"limits": {"runtime": "8d"}, "spot": SPOT}, "limits.runtime", "7 days"),
    ({"tags": {"k" * 101: "v"}}, "tags.'kkkk", "at most 100"),
    ({"tags": {"cloudtrain_run": "v"}}, "tags.cloudtrain_run", "take another name"),
    ({"tags": {f"t{n}": "v" for n in range(47)}}, "tags", "at most 50"),
    ({"overrides": {"azureml": {"name": "mine"}}}, "overrides.azureml.name", "one for every attempt"),
    ({"overrides": {"azureml": {"code": "azureml:mine:1"}}}, "overrides.azureml.code", "leave it"),
    (
        {"overrides": {"azureml": {"resources": {"instance_count": 4}}}},
        "overrides.azureml.resources.instance_count",
        "given by resources.nodes",
    ),
    ({"overrides": {"azureml": {"outputs": "none"}}}, "overrides.azureml.outputs", "give single entries"),
    ({"overrides": {"azureml": {"tags": {"cloudtrain_run": "x"}}}}, "overrides.azureml.tags.cloudtrain_run", "leave"),
    *(
        ({"overrides": {"azureml": {"environment_variables": change}}}, f"{_VARIABLES}.{next(iter(change))}", "set by")
        for change in ({"CLOUDTRAIN_CODE": None}, {"CLOUDTRAIN_SPEC": "spec.json"})
    ),
    *(
        ({"overrides": {"azureml": {"inputs": {"cloudtrain_spec": change}}}}, f"{_INPUTS}.cloudtrain_spec", "spec.json")
        for change in (None, {"path": f"{DATASTORE}mine/"}, {"mode": "direct"}, "mine")
    ),
    ({"overrides": {"azureml": {"inputs": {"cloudtrain_more": TRAIN["train"]}}}}, _INPUTS, "leave it"),
    ({"overrides": {"azureml": {"inputs": None}}}, _INPUTS, "give single entries"),
    (
        {"overrides": {"azureml": {"command": "python3 train.py"}}},
        "overrides.azureml.command",
        'lacks CLOUDTRAIN_SPEC="${{inputs.cloudtrain_spec}}/spec.json" CLOUDTRAIN_CHECKPOINT_DIR="${{outputs.cloud',
    ),
    (
        {"overrides": {"azureml": {"outputs": {"cloudtrain_metrics": None}}}},
        "overrides.azureml.outputs.cloudtrain_metrics",
        "a folder of the run",
    ),
    ({"framework": "tensorflow"}, "framework", "pytorch"),
]


@pytest.mark.parametrize(("fields", "key", "words"), CASES, ids=[key for _, key, _ in CASES])
def test_refused(fields: dict[str, Any], key: str, words: str) -> None:
    with pytest.raises(JobFileError) as caught:
        request(**fields)
    (problem,) = caught.value.problems
    assert problem.key.startswith(key)
    assert words in problem.message


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(JobFileError) as caught:
        request(resources={"disk_gib": 1, "nodes": 200}, limits={"runtime": "99d"}, data={"a": {"uri": "s3://b/x"}})
    keys = {problem.key for problem in caught.value.problems}
    assert keys == {"resources.disk_gib", "resources.nodes", "limits.runtime", "data.a.uri"}


def test_a_secret_that_is_no_reference_is_not_repeated() -> None:
    with pytest.raises(JobFileError) as caught:
        request(environment={"secrets": {"KEY": {"azureml": "hunter2!"}}})
    assert "hunter2" not in str(caught.value)


def test_a_part_of_an_accelerator_serves_a_single_process() -> None:
    made = request(resources={"instance": "Standard_NV6ads_A10_v5"}, environment={"image": "r.io/t:1"}).native
    assert made["resources"]["instance_type"] == "Standard_NV6ads_A10_v5"
