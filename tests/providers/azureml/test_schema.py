"""Our tables and rules against the vendor's client: its schemas, and what it does to a form that it accepts."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cloudtrain.providers import registry
from cloudtrain.providers.azureml import form, rules, schema
from cloudtrain.providers.written import as_yaml
from tests.providers.azureml import vendor
from tests.providers.azureml.jobs import DATASTORE, TRAIN, changed, native

BASE: dict[str, Any] = {"resources": {"nodes": 2}, "data": TRAIN, "limits": {"runtime": "6h"}}


@pytest.fixture(scope="module", autouse=True)
def _client() -> None:
    vendor.needed()


def test_the_fields_of_a_job_are_the_vendors() -> None:
    from azure.ai.ml._schema.job.command_job import CommandJobSchema

    read, written = vendor.fields(CommandJobSchema)
    assert set(form.JOB) == read | {"$schema"}
    assert set(form.DROPPED_BELOW[""]) == written - {"$schema"}


def test_the_fields_of_sections_are_the_vendors() -> None:
    from azure.ai.ml._schema.job.input_output_entry import DataInputSchema, OutputSchema
    from azure.ai.ml._schema.job.job_limits import CommandJobLimitsSchema
    from azure.ai.ml._schema.job_resource_configuration import JobResourceConfigurationSchema
    from azure.ai.ml._schema.queue_settings import QueueSettingsSchema

    assert set(form.RESOURCES) == vendor.fields(JobResourceConfigurationSchema)[0]
    assert set(form.LIMITS) == vendor.fields(CommandJobLimitsSchema)[0]
    assert set(form.QUEUE) == vendor.fields(QueueSettingsSchema)[0]
    assert set(form.INPUT) - {"value"} == vendor.fields(DataInputSchema)[0]
    assert set(form.OUTPUT) == vendor.fields(OutputSchema)[0]


def test_the_fields_of_an_environment_are_the_vendors() -> None:
    from azure.ai.ml._schema.assets.environment import AnonymousEnvironmentSchema

    read, written = vendor.fields(AnonymousEnvironmentSchema)
    assert set(form.ENVIRONMENT_FIELDS) | set(form.DROPPED_BELOW["environment"]) == (read | written) - {"$schema"}


def test_the_kinds_of_distributions_identities_and_services_are_the_vendors() -> None:
    from azure.ai.ml._schema.job import distribution, identity, services

    kinds = {
        "pytorch": distribution.PyTorchDistributionSchema,
        "mpi": distribution.MPIDistributionSchema,
        "tensorflow": distribution.TensorFlowDistributionSchema,
        "ray": distribution.RayDistributionSchema,
    }
    assert {name: set(known) for name, known in form.DISTRIBUTIONS.items()} == _read(kinds)
    identities = {
        "managed": identity.ManagedIdentitySchema,
        "managed_identity": identity.ManagedIdentitySchema,
        "user_identity": identity.UserIdentitySchema,
        "aml_token": identity.AMLTokenIdentitySchema,
    }
    assert {name: set(known) for name, known in form.IDENTITY_FIELDS.items()} == _read(identities)
    kinds = {
        "ssh": services.SshJobServiceSchema,
        "tensor_board": services.TensorBoardJobServiceSchema,
        "vs_code": services.VsCodeJobServiceSchema,
        "jupyter_lab": services.JupyterLabJobServiceSchema,
    }
    assert {name: set(known) for name, known in form.SERVICES.items()} == _read(kinds)


def _read(kinds: Mapping[str, Any]) -> dict[str, set[str]]:
    return {name: vendor.fields(kind)[0] for name, kind in kinds.items()}


def test_the_words_are_the_vendors() -> None:
    from azure.ai.ml.constants._common import AssetTypes, InputOutputModes
    from azure.ai.ml.constants._job.job import JobPriorityValues, JobTierNames

    assert set(form.JOB_TIERS) == set(JobTierNames.ALLOWED_NAMES)
    assert set(form.PRIORITIES) == set(JobPriorityValues.ALLOWED_VALUES)
    types = {value for name, value in vars(AssetTypes).items() if name.isupper()}
    assert set(form.INPUT_TYPES) <= types
    modes = {value for name, value in vars(InputOutputModes).items() if name.isupper()}
    assert set(form.TABLE_MODES) | set(form.OUTPUT_MODES) <= modes


# What the client accepts and bends: the value that would go out, as it was seen. Our rules name each of them.
BENT: list[tuple[str, Any, tuple[str, ...], Any]] = [
    ("limits.timeout", 0, ("limits",), {"jobLimitsType": "Command"}),
    ("resources.instance_count", 2.7, ("resources", "instanceCount"), 2),
    ("resources.instance_count", 0, ("resources", "instanceCount"), 0),
    ("resources.shm_size", "16 gigs", ("resources", "shmSize"), "16 gigs"),
    ("environment_variables.N", 5, ("environmentVariables", "N"), 5),
    ("environment_variables.N", False, ("environmentVariables", "N"), False),
    ("status", "Running", ("status",), None),
    ("outputs.o", {"type": "uri_folder", "path": "s3://b/x"}, ("outputs", "o", "uri"), "s3://b/x"),
    ("tags", {f"t{n}": "v" for n in range(51)}, ("displayName",), None),
]


@pytest.mark.parametrize(("path", "value", "out", "seen"), BENT)
def test_what_the_client_lets_pass_is_caught_by_our_rules(
    tmp_path: Path, path: str, value: Any, out: tuple[str, ...], seen: Any
) -> None:
    bad = changed(native(**BASE), path, value)
    assert schema.problems(bad) == ()
    assert rules.problems(bad)
    if seen is not None or path == "status":
        sent: Any = vendor.wire(_written(tmp_path, bad))["properties"]
        for step in out:
            sent = sent.get(step)
        assert sent == seen


def test_a_list_of_docker_arguments_loses_what_stands_beside_it(tmp_path: Path) -> None:
    resources = {"instance_count": 2, "docker_args": ["-v"], "locations": ["eastus"]}
    sent = vendor.wire(_written(tmp_path, changed(native(**BASE), "resources", resources)))
    assert "locations" not in sent["properties"]["resources"]


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("resources.instance_cout", 2, ("resources", "instance_cout")),
        ("inputs.train.mod", "x", ("inputs", "train", "mod")),
        ("inputs.train.mode", "mount", ("inputs", "train", "mode")),
        ("inputs.lr", {"value": 1, "type": "number"}, ("inputs", "lr", "type")),
        ("inputs.lr", [1], ("inputs", "lr")),
        ("outputs.o", {"type": "uri_folder", "path": f"{DATASTORE}o/", "mod": "x"}, ("outputs", "o", "mod")),
        ("distribution", {"type": "pytorch", "process_count": 1}, ("distribution", "process_count")),
        ("identity", {"type": "managed", "clientid": "5"}, ("identity", "clientid")),
        ("tags.x", 5, ("tags", "x")),
        ("limits.timeout", "6h", ("limits", "timeout")),
        ("environment.imag", "x", ("environment", "imag")),
        ("queue_settings.job_tier", "cheap", ("queue_settings", "job_tier")),
        ("command", None, ("command",)),
    ],
)
def test_the_loaders_messages_have_their_paths(path: str, value: Any, where: tuple[str, ...]) -> None:
    bad = changed(native(**BASE), path, value)
    assert [problem.path for problem in schema.problems(bad)] == [where]
    said = [problem.path for problem in registry.check("azureml", bad).problems]
    assert said.count(where) == 1  # by one of the two


def test_a_sound_form_passes_both_and_the_loader_says_nothing(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    checked = registry.check("azureml", native(**BASE, spot={"enabled": True}))
    assert checked == ((), "")
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


def test_the_vendors_logger_is_left_as_it_was() -> None:
    logger = logging.getLogger("azure.ai.ml")
    before = logger.level
    registry.check("azureml", native())
    assert logger.level == before


def test_without_the_vendors_package_the_rules_are_kept_and_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.ai.ml", None)  # as if it were not installed
    checked = registry.check("azureml", changed(native(), "resources.instance_count", 0))
    assert [problem.path for problem in checked.problems] == [("resources", "instance_count")]
    assert "pip install 'cloudtrain[azureml]'" in checked.skipped


def test_a_newer_client_knows_fields_that_we_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that takes the form as it is has the last word on names, and on nothing else."""
    client = ModuleType("azure.ai.ml")
    monkeypatch.setattr(client, "load_job", lambda _file: None, raising=False)
    monkeypatch.setitem(sys.modules, "azure.ai.ml", client)
    assert registry.check("azureml", changed(native(), "resources.colour", "red")) == ((), "")
    assert registry.check("azureml", changed(native(), "resources.instance_count", 0)).problems


def test_translating_and_the_rules_load_no_vendor_package() -> None:
    program = (
        "import sys\n"
        "from tests.providers.azureml.jobs import request\n"
        "from cloudtrain.providers import registry\n"
        "from cloudtrain.providers.azureml import rules\n"
        "made = request()\n"
        "rules.problems(made.native), registry.export(made), registry.node_contract(made, 0)\n"
        "print(sorted({'azure', 'marshmallow'} & {name.partition('.')[0] for name in sys.modules}))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


def _written(folder: Path, made: dict[str, Any]) -> Path:
    (folder / "code").mkdir()
    file = folder / "job.yml"
    file.write_text(as_yaml(made), encoding="utf-8")
    return file
