"""The way out: the vendor's client reads the file, and would send what was meant."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from cloudtrain.providers import registry
from cloudtrain.providers.base import Request
from cloudtrain.providers.shipping import write_spec
from cloudtrain.providers.written import as_yaml
from tests.providers.azureml import vendor
from tests.providers.azureml.jobs import DATASTORE, GPUS, TRAIN, native, request

ACCOUNT = {
    "--subscription": "11111111-2222-3333-4444-555555555555",
    "--resource-group": "my-group",
    "--workspace-name": "my-workspace",
}


@pytest.fixture(scope="module", autouse=True)
def _client() -> None:
    vendor.needed()


def _exported(folder: Path, made: Request) -> Path:
    export = registry.export(made)
    (folder / "code").mkdir()
    (folder / "code" / "launch.py").write_text("")
    write_spec(made.spec, folder / "spec")
    for name, text in export.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def _sent(folder: Path, made: Request) -> dict[str, Any]:
    properties: dict[str, Any] = vendor.wire(_exported(folder, made) / "job.yml")["properties"]
    return properties


def test_the_command_creates_the_job_of_the_file_in_the_workspace(tmp_path: Path) -> None:
    made = request()
    (command,) = registry.export(made).commands
    words = shlex.split(command)
    assert words[:4] == ["az", "ml", "job", "create"]
    assert words[4] == "--file"
    options = {words[4]: words[5], **dict(word.split("=", 1) for word in words[6:])}
    assert options == {"--file": "job.yml", **ACCOUNT}
    assert (_exported(tmp_path, made) / options["--file"]).is_file()


def test_the_wire_has_what_was_meant(tmp_path: Path) -> None:
    """Wire names and words as the fact sheet has them, observed with a real client."""
    made = request(
        resources=GPUS,
        data={"train": {**TRAIN["train"], "mode": "download"}, "test": {"uri": "azureml:digits:3"}},
        outputs={"preds": f"{DATASTORE}preds/"},
        environment={"image": "r.azurecr.io/t:1", "env": {"SEED": "007"}},
        limits={"runtime": "6h"},
        spot={"enabled": True},
        tags={"team": "vision"},
        identity="managed",
    )
    sent = _sent(tmp_path, made)
    assert sent["jobType"] == "Command"
    assert sent["command"] == made.native["command"]
    assert sent["codeId"] == "./code"  # of this folder: uploaded, then replaced by the asset's id
    assert sent["displayName"] == made.name
    assert sent["experimentName"] == "digits"
    assert sent["environmentVariables"] == made.native["environment_variables"]
    assert sent["environmentVariables"]["SEED"] == "007"
    assert sent["tags"] == made.native["tags"]
    assert sent["distribution"] == {"distributionType": "PyTorch", "processCountPerInstance": 1}
    resources = {"instanceCount": 2, "instanceType": "Standard_ND96amsr_A100_v4", "shmSize": "950g", "properties": {}}
    assert sent["resources"] == resources
    assert sent["limits"] == {"jobLimitsType": "Command", "timeout": "PT6H"}
    assert sent["queueSettings"] == {"jobTier": "Spot"}
    assert sent["identity"] == {"identityType": "Managed"}
    assert sent["inputs"] == {
        "cloudtrain_spec": {"jobInputType": "uri_folder", "mode": "Download", "uri": "./spec"},  # uploaded
        "train": {"jobInputType": "uri_folder", "mode": "Download", "uri": f"{DATASTORE}train/"},
        "test": {"jobInputType": "uri_folder", "mode": "ReadOnlyMount", "uri": "digits:3"},
    }
    assert sent["outputs"]["preds"] == {
        "jobOutputType": "uri_folder",
        "mode": "ReadWriteMount",
        "uri": f"{DATASTORE}preds/",
    }
    assert {output["mode"] for output in sent["outputs"].values()} == {"ReadWriteMount"}
    assert "computeId" not in sent


def test_inputs_of_an_override_stay_as_they_are() -> None:
    """A value has no path, and the vendor's form takes one without more around it."""
    more = {"lr": {"value": "0.5"}, "plain": 3, "other": {"type": "uri_folder", "path": f"{DATASTORE}x/"}}
    made = request(overrides={"azureml": {"inputs": more}})
    inputs = yaml.safe_load(registry.export(made).files["job.yml"])["inputs"]
    assert inputs == {**more, "cloudtrain_spec": {"type": "uri_folder", "path": "./spec", "mode": "download"}}


def test_a_cluster_and_a_single_node_on_the_wire(tmp_path: Path) -> None:
    sent = _sent(tmp_path, request(compute="cpu-cluster"))
    assert sent["computeId"] == "cpu-cluster"
    assert sent["resources"]["instanceCount"] == 1
    assert "instanceType" not in sent["resources"]
    assert not {"distribution", "queueSettings", "limits", "identity"} & set(sent)


@pytest.mark.parametrize(
    ("image", "identifier"),
    [
        ("azureml:mine:4", "mine:4"),
        ("AzureML-acpt-pytorch-2.8-cuda12.6:3", "AzureML-acpt-pytorch-2.8-cuda12.6:3"),
        ("azureml://registries/azureml/environments/acpt/versions/3",) * 2,
    ],
)
def test_registered_environments_on_the_wire(tmp_path: Path, image: str, identifier: str) -> None:
    assert _sent(tmp_path, request(environment={"image": image}))["environmentId"] == identifier


def test_the_image_and_its_packages_reach_the_client(tmp_path: Path) -> None:
    made = request()
    loaded = vendor.load(_exported(tmp_path, made) / "job.yml")
    environment = made.native["environment"]
    assert loaded.environment.image == environment["image"]
    assert loaded.environment.conda_file == environment["conda_file"]


HOSTILE = [
    "1e3", "0o17", "017", "yes", "null", "~", "1_000", "12:30:45", "2026-11-30", "=", "<<", " x", "a: b", "#",
    "tab\there", "line\nbreak", "\x7f\x85\u2028", "\N{GRINNING FACE}", "'\"\\$`", "{a}", "*a", "&a", "",
]  # fmt: skip


def test_any_text_survives_the_file(tmp_path: Path) -> None:
    form = native(environment={"env": {f"V{number}": value for number, value in enumerate(HOSTILE)}})
    assert yaml.safe_load(as_yaml(form)) == form
    sent = _sent(tmp_path, request(environment={"env": {f"V{n}": value for n, value in enumerate(HOSTILE)}}))
    assert [sent["environmentVariables"][f"V{number}"] for number in range(len(HOSTILE))] == HOSTILE


def test_what_yaml_1_2_reads_as_numbers_is_quoted() -> None:
    written = as_yaml({"a": "1e3", "b": "0o17"})
    assert [line.split(": ")[1] for line in written.splitlines()] == [json.dumps("1e3"), json.dumps("0o17")]
