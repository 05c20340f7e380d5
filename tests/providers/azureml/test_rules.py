"""Requests with one fault each, by our own rules alone: what the vendor's loader would let pass among them."""

from __future__ import annotations

from typing import Any

import pytest

from cloudtrain.providers.azureml import rules
from cloudtrain.spec.problems import Path
from tests.providers.azureml.jobs import DATASTORE, TRAIN, changed, native

BASE: dict[str, Any] = {"resources": {"nodes": 2}, "data": TRAIN, "limits": {"runtime": "6h"}}
FOLDER = {"type": "uri_folder", "path": f"{DATASTORE}x/"}
IMAGE = "environment.image"
CASES: list[tuple[str, Any, str, str]] = [
    # the form's own fields, and those that the client drops without a word
    ("resources.instance_cout", 2, "resources.instance_cout", "unknown field, did you mean 'instance_count'?"),
    ("enviroment", {}, "enviroment", "did you mean 'environment'?"),
    ("limits.trial_timeout", 5, "limits.trial_timeout", "did you mean 'timeout'?"),
    ("inputs.train.pth", "x", "inputs.train.pth", "did you mean 'path'?"),
    ("outputs.cloudtrain_model.mod", "x", "outputs.cloudtrain_model.mod", "did you mean 'mode'?"),
    ("distribution.process_count", 1, "distribution.process_count", "did you mean 'process_count_per_instance'?"),
    ("queue_settings.tier", "Spot", "queue_settings.tier", "did you mean 'job_tier'?"),
    ("identity", {"type": "managed", "clientid": "x"}, "identity.clientid", "did you mean 'client_id'?"),
    ("services", {"s": {"type": "ssh", "ssh_public_key": "k"}}, "services.s.ssh_public_key", "'ssh_public_keys'?"),
    ("services", {"s": {"job_service_type": "ssh"}}, "services.s.type", "must be one of ssh"),
    ("status", "Running", "status", "drops it"),
    ("environment.version", "3", "environment.version", "drops it"),
    # limits and alphabets
    ("name", "n" * 256, "name", "256 characters, at most 255"),
    ("name", "Digits", "name", "lower-case"),
    ("name", "-digits", "name", "beginning with a letter"),
    ("display_name", "d" * 257, "display_name", "257 characters, at most 256"),
    ("description", "d" * 5001, "description", "5001 characters, at most 5000"),
    ("tags", {f"t{n}": "v" for n in range(51)}, "tags", "51 entries, at most 50"),
    ("tags", {"k" * 101: "v"}, f"tags.{'k' * 101}", "101 characters, at most 100"),
    ("tags.team", "v" * 1001, "tags.team", "1001 characters, at most 1000"),
    ("tags.team", 7, "tags.team", "must be text"),
    ("properties", {"p": "v" * 1001}, "properties.p", "at most 1000"),
    ("resources.instance_count", 0, "resources.instance_count", "at least 1"),
    ("resources.instance_count", 101, "resources.instance_count", "at most 100"),
    ("resources.instance_count", 2.7, "resources.instance_count", "whole number"),
    ("resources.instance_count", True, "resources.instance_count", "whole number"),
    ("resources.shm_size", "16 gigs", "resources.shm_size", "such as 16g"),
    ("resources.shm_size", "0g", "resources.shm_size", "such as 16g"),
    ("resources.instance_type", "Standard_D4s_v5,Standard_D8s_v5", "resources.instance_type", "one size"),
    ("limits.timeout", 0, "limits.timeout", "at least 1"),
    ("limits.timeout", 21 * 86_400 + 1, "limits.timeout", "at most 1814400"),
    ("limits.timeout", "6h", "limits.timeout", "whole number"),
    ("queue_settings.job_tier", "cheap", "queue_settings.job_tier", "spot"),
    ("queue_settings.priority", 1, "queue_settings.priority", "low, medium, high"),
    ("compute", "azureml:serverless", "compute", "leave compute out"),
    ("compute", "local", "compute", "on the machine that submits"),
    ("compute", "azureml:a b", "compute", "name of a compute"),
    ("type", "sweep", "type", "must be command"),
    ("command", " ", "command", "must be made of a command"),
    ("command", None, "command", "is missing"),
    # variables and environments
    ("environment_variables.N", 5, "environment_variables.N", "in quotes"),
    ("environment_variables.N", False, "environment_variables.N", "in quotes"),
    ("environment_variables.X", "${{outputs.x}}", "environment_variables.X", "in the command only"),
    ("environment_variables.A=B", "x", "environment_variables.'A=B'", "no name"),
    ("environment", None, "environment", "is missing"),
    ("environment", "mine", "environment", "azureml:NAME:VERSION"),
    ("environment", "azureml:mine", "environment", "azureml:NAME:VERSION"),
    ("environment", "AzureML-acpt@latest", "environment", "azureml:NAME:VERSION"),
    (IMAGE, None, "environment", "exactly one"),
    (IMAGE, "docker://x", IMAGE, "container image"),
    ("environment.build", {"path": "."}, "environment", "exactly one"),
    ("environment.conda_file", "conda.yml", "environment.conda_file", "no file lies beside"),
    ("environment.conda_file", {"channels": []}, "environment.conda_file.dependencies", "a list of packages"),
    (
        "environment.conda_file",
        {"dependencies": ["python=3.10", {"pip": ["torch=2.8"]}]},
        "environment.conda_file.dependencies[1].pip[0]",
        "write torch==2.8",
    ),
    # inputs and outputs
    ("inputs.a-b", FOLDER, "inputs.a-b", "letters, digits and _"),
    ("inputs.train.type", "folder", "inputs.train.type", "'uri_folder'?"),
    ("inputs.train.mode", "rw_mount", "inputs.train.mode", "ro_mount, download, direct"),
    ("inputs.train.path", "s3://b/x", "inputs.train.path", "no place that Azure ML reads"),
    ("inputs.train.path", None, "inputs.train.path", "is missing"),
    ("outputs.o", {**FOLDER, "path": "wasbs://c@a/x"}, "outputs.o.path", "datastores only"),
    ("outputs.o", {**FOLDER, "mode": "ro_mount"}, "outputs.o.mode", "rw_mount"),
    # what does not go together
    ("command", "python x.py ${{inputs.trian}}", "command", "none of the inputs, did you mean 'train'?"),
    ("command", "python x.py ${{outputs.o}}", "command", "none of the outputs"),
    ("command", "python x.py ${{data.train}}", "command", "never replaced"),
    ("distribution", None, "distribution", "2 nodes do not learn of each other"),
    ("resources.instance_count", 1, "distribution", "left out for one node"),
    ("distribution.process_count_per_instance", 8, "distribution.process_count_per_instance", "must be 1"),
    ("distribution", {"type": "tensorflow", "worker_count": 2}, "distribution.type", "pytorch or mpi"),
    ("code", None, "code", "is missing"),
    ("code", "https://host/code", "code", "must be ./code"),
    ("resources", {"instance_count": 2, "docker_args": ["-v"], "locations": ["eastus"]}, "resources.locations", "drop"),
]


@pytest.mark.parametrize(("path", "value", "where", "words"), CASES)
def test_a_fault_is_found_at_its_place(path: str, value: Any, where: str, words: str) -> None:
    form = changed(native(**BASE), path, value)
    found = [problem for problem in rules.problems(form) if words in problem.message]
    assert [problem.path for problem in found] == [_path(where)], rules.problems(form)


def test_what_is_translated_has_no_fault() -> None:
    for fields in (BASE, {}, {"spot": {"enabled": True}}, {"compute": "gpu-cluster"}, {"identity": "user"}):
        assert rules.problems(native(**fields)) == ()


def test_low_priority_ends_after_seven_days_and_is_not_for_clusters() -> None:
    form = native(spot={"enabled": True}, limits={"runtime": "7d"})
    assert rules.problems(form) == ()
    (late,) = rules.problems(changed(form, "limits.timeout", 7 * 86_400 + 1))
    assert "at most 604800" in late.message
    (cluster,) = rules.problems(changed(form, "compute", "azureml:gpu-cluster"))
    assert cluster.path == ("queue_settings", "job_tier")


@pytest.mark.parametrize("value", [None, 1, "x", [1], {"x": 1}, {"x": {"y": [None]}}, [{"x": 1}]])
def test_no_override_breaks_the_rules_themselves(value: Any) -> None:
    form = native(**BASE)
    for key in [*form, "services", "identity", "queue_settings", "properties"]:
        rules.problems({**form, key: value})
        if isinstance(form.get(key), dict):
            for below in form[key]:
                rules.problems({**form, key: {**form[key], below: value}})


def _path(where: str) -> Path:
    """``a.b[1]`` as the path that is written so."""
    steps: list[str | int] = []
    for step in where.split("."):
        name, *numbers = step.strip("'").replace("]", "").split("[")
        steps += [name, *map(int, numbers)]
    return tuple(steps)
