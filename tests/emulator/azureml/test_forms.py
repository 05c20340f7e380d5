"""What arrives is what was rendered: the received job, turned back into the form that it was made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cloudtrain.emulator.azureml import body, wire
from cloudtrain.providers.identity import canonical
from tests.emulator.azureml.emulated import Emulated, client, vendor
from tests.emulator.azureml.trainings import write_form

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the vendor's packages, by each other

GOLDEN = Path(__file__).parents[2] / "providers" / "golden"
FORMS = {
    file.parent.name: json.loads(file.read_text())["request"]
    for file in sorted(GOLDEN.glob("*/azureml.json"))
    if "request" in json.loads(file.read_text())
}
MORE: dict[str, Any] = {
    "type": "command",
    "name": "waits-for-all",
    "display_name": "shown",
    "experiment_name": "trials",
    "description": "all fields",
    "tags": {"a": "b"},
    "properties": {"p": "q"},
    "command": "python3 launch.py ${{inputs.lr}} ${{inputs.data}} ${{outputs.out}}",
    "code": "./code",
    "environment": "azureml:AzureML-acpt-pytorch-2.8-cuda12.6:3",
    "environment_variables": {"A": "1"},
    "compute": "azureml:gpu-cluster",
    "resources": {
        "instance_count": 2,
        "shm_size": "4g",
        "docker_args": "--ipc=host",
        "locations": ["westeurope"],
        "max_instance_count": 3,
    },
    "distribution": {"type": "mpi", "process_count_per_instance": 1},
    "inputs": {
        "lr": {"value": "0.5"},
        "data": {"type": "uri_folder", "path": "azureml://datastores/workspaceblobstore/paths/x/", "mode": "download"},
        "table": {"type": "mltable", "path": "azureml:known:4", "mode": "eval_mount"},
    },
    "outputs": {
        "out": {"type": "uri_folder", "mode": "upload"},
        "named": {"type": "uri_folder", "name": "asset", "version": "3"},
    },
    "limits": {"timeout": 90_061},
    "queue_settings": {"priority": "high"},
    "identity": {"type": "managed", "client_id": "00000000-0000-0000-0000-000000000001"},
    "services": {"shell": {"type": "ssh", "ssh_public_keys": "k", "nodes": "all"}},
}


@pytest.mark.parametrize("form", [*FORMS.values(), MORE], ids=[*FORMS, "all-fields"])
def test_what_arrives(azure: Emulated, tmp_path: Path, form: dict[str, Any]) -> None:
    sent = {**form, "name": f"waits-{form['name']}"[:63]}
    if str(sent["environment"]).startswith("azureml:my"):
        name, version = sent["environment"].split(":")[1:]
        azure.call("PUT", f"/environments/{name}/versions/{version}", {"properties": {"image": "a/b:1"}})
    (tmp_path / "code").mkdir()
    (tmp_path / "code/launch.py").write_text("")
    given = {**sent, "inputs": {**sent.get("inputs", {}), **({"lr": "0.5"} if form is MORE else {})}}
    client().jobs.create_or_update(vendor().load_job(write_form(tmp_path, given)))
    sent.pop("$schema", None)  # the one field that never travels
    assert canonical(azure.plane.forms[-1]) == canonical(sent)
    assert azure.plane.requests[-1]["properties"]["command"] == sent["command"]


def test_fields_are_the_vendors() -> None:
    """Of the models that its client brings; those fields of theirs that no command job of its client's has are left
    out."""
    vendor()
    from azure.ai.ml._restclient.arm_ml_service import models

    for ours, theirs, left_out in (
        (body.CommandJob, models.CommandJob, {"status", "parameters"}),
        (body.Resources, models.JobResourceConfiguration, set()),
        (body.Limits, models.CommandJobLimits, set()),
        (body.Queue, models.QueueSettings, set()),
        (body.Output, models.UriFolderJobOutput, set()),
        (body.Input, models.UriFolderJobInput, set()),
        (body.Service, models.JobService, set()),
    ):
        known = {field._rest_name for field in theirs()._attr_to_rest_field.values()}
        aliases = {str(field.alias) for field in ours.model_fields.values()}
        assert known - left_out <= aliases, ours


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [("PT90S", 90), ("PT1H30M", 5400), ("P1DT2H", 93_600), ("P7D", 604_800), ("PT0.5S", 0.5)],
)
def test_durations(duration: str, seconds: float) -> None:
    assert wire.seconds(duration) == seconds


@pytest.mark.parametrize("text", ["", "P", "PT", "1H", "PT1", "P1H", "PT1H30", "pt1h", "-PT1H"])
def test_no_durations(text: str) -> None:
    assert wire.seconds(text) == text
