"""What the service refuses, call by call: expected answers are written down here, from the facts that are known."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
import requests

from tests.emulator.azureml.emulated import PATH, Emulated

BODY: dict[str, Any] = {
    "jobType": "Command",
    "displayName": "shown",
    "experimentName": "trials",
    "command": 'exec env CLOUDTRAIN_MODEL_DIR="${{outputs.cloudtrain_model}}" python3 -u launch.py',
    "environmentId": f"{PATH}/environments/CliV2AnonymousEnvironment/versions/abc",
    "environmentVariables": {"CLOUDTRAIN_PROVIDER": "azureml"},
    "isArchived": False,
    "inputs": {},
    "outputs": {
        "cloudtrain_model": {
            "jobOutputType": "uri_folder",
            "mode": "ReadWriteMount",
            "uri": "azureml://datastores/workspaceblobstore/paths/m/",
        }
    },
    "tags": {"cloudtrain_run": "r"},
    "properties": {},
    "resources": {"instanceCount": 1, "instanceType": "Standard_D2s_v5", "properties": {}, "shmSize": "4g"},
}


def registered(azure: Emulated) -> dict[str, Any]:
    """A body whose environment and code are there."""
    image = {"properties": {"image": "repo/image:1", "isAnonymous": True, "isArchived": False}}
    answer = azure.call("PUT", "/environments/CliV2AnonymousEnvironment/versions/abc", image)
    assert answer.status_code in (200, 201), answer.text
    if azure.call("GET", "/codes/some/versions/1").status_code == 404:
        asked = {"pendingUploadType": "TemporaryBlobReference"}
        place = azure.call("POST", "/codes/some/versions/1/startPendingUpload", asked).json()
        address = place["blobReferenceForConsumption"]
        container, _, sas = address["credential"]["sasUri"].partition("?")
        headers = {"x-ms-blob-type": "BlockBlob"}
        put = requests.put(f"{container}/code/launch.py?{sas}", data=b"print('x')", headers=headers, timeout=30)
        assert put.status_code == 201, put.text
        code = {"properties": {"codeUri": f"{address['blobUri']}/code", "isAnonymous": True}}
        assert azure.call("PUT", "/codes/some/versions/1", code).status_code == 201
    return {**copy.deepcopy(BODY), "codeId": f"{PATH}/codes/some/versions/1"}


def changed(body: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    *steps, last = path.split("/")
    at = body
    for step in steps:
        at = at.setdefault(step, {})
    if value is None:
        del at[last]
    else:
        at[last] = value
    return body


@pytest.mark.parametrize(
    ("path", "value", "status", "told"),
    [
        ("command", None, 400, "properties.command"),
        ("command", "  ", 400, "properties.command"),
        ("environmentId", None, 400, "properties.environmentId"),
        ("environmentId", f"{PATH}/environments/other/versions/1", 404, "other:1"),
        ("environmentId", "azureml://registries/azureml/environments/nothing/versions/1", 404, "nothing"),
        ("codeId", f"{PATH}/codes/unknown/versions/1", 404, "unknown:1"),
        ("computeId", f"{PATH}/computes/azureml:cpu-cluster", 404, "azureml:cpu-cluster"),
        ("computeId", f"{PATH}/computes/serverless", 404, "serverless"),
        ("jobType", "Commando", 400, "properties.jobType"),
        ("jobType", "Sweep", 400, "command jobs only"),
        ("displayname", "x", 400, "properties.displayname"),
        ("displayName", "x" * 257, 400, "257 characters"),
        ("description", "x" * 5001, 400, "5001 characters"),
        ("experimentName", "two words", 400, "properties.experimentName"),
        ("tags", {f"t{number}": "" for number in range(51)}, 400, "51 entries"),
        ("tags", {"t": "x" * 1001}, 400, "properties.tags.t: has 1001 characters"),
        ("tags", {"t": 1}, 400, "properties.tags.t"),
        ("environmentVariables/COUNT", 3, 400, "properties.environmentVariables.COUNT"),
        ("environmentVariables/DIR", "${{outputs.x}}", 400, "replaced in the command only"),
        ("resources/instanceCount", 0, 400, "properties.resources.instanceCount"),
        ("resources/instanceCount", 101, 400, "at most 100"),
        ("resources/instanceCount", "2", 400, "properties.resources.instanceCount"),
        ("resources/instanceType", "Standard_NC1", 400, "no VM size"),
        ("resources/shmSize", "16 gigs", 400, "properties.resources.shmSize"),
        ("limits", {"jobLimitsType": "Command", "timeout": "PT0S"}, 400, "properties.limits.timeout"),
        ("limits", {"jobLimitsType": "Command", "timeout": "P22D"}, 400, "properties.limits.timeout"),
        ("limits", {"jobLimitsType": "Command", "timeout": "an hour"}, 400, "properties.limits.timeout"),
        ("queueSettings", {"jobTier": "Cheap"}, 400, "properties.queueSettings.jobTier"),
        ("distribution", {"distributionType": "Horovod"}, 400, "properties.distribution"),
        ("distribution", {"distributionType": "PyTorch", "workerCount": 2}, 400, "properties.distribution"),
        ("inputs/two-words", {"jobInputType": "uri_folder", "uri": "azureml://datastores/d/paths/x"}, 400, "two-words"),
        ("inputs/data", {"jobInputType": "uri_folder", "uri": "s3://bucket/x"}, 400, "properties.inputs.data.uri"),
        ("inputs/data", {"jobInputType": "folder", "uri": "azureml://x"}, 400, "properties.inputs.data.jobInputType"),
        ("outputs/out", {"jobOutputType": "uri_folder", "uri": "https://x/y"}, 400, "properties.outputs.out.uri"),
    ],
)
def test_what_a_job_may_not_say(azure: Emulated, path: str, value: Any, status: int, told: str) -> None:
    body = changed(registered(azure), path, value)
    answer = azure.call("PUT", "/jobs/refused", {"properties": body})
    error = answer.json()["error"]
    assert (answer.status_code, told in error["message"]) == (status, True), error
    assert {"code", "message", "target", "details", "additionalInfo", "innerError"} <= error.keys()
    assert azure.call("GET", "/jobs/refused").status_code == 404


@pytest.mark.parametrize("name", ["Upper", "-dash", "a.b", "a" * 256])
def test_names(azure: Emulated, name: str) -> None:
    answer = azure.call("PUT", f"/jobs/{name}", {"properties": registered(azure)})
    assert answer.status_code == 400
    assert "name" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("environmentId", "AzureML-acpt-pytorch-2.8-cuda12.6@latest"),
        ("environmentId", "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/3"),
        ("computeId", f"{PATH}/computes/cpu-cluster"),
        ("resources/instanceType", "STANDARD_D2S_V5"),
        ("limits", {"jobLimitsType": "Command", "timeout": "P7DT1H"}),
        ("queueSettings", {"jobTier": "Spot", "priority": 3}),
        ("inputs/lr", {"jobInputType": "literal", "value": "0.5"}),
        ("outputs/out", {"jobOutputType": "uri_folder"}),
        ("identity", {"identityType": "UserIdentity"}),
        (
            "services/ssh",
            {"jobServiceType": "SSH", "nodes": {"nodesValueType": "All"}, "properties": {"sshPublicKeys": "k"}},
        ),
    ],
)
def test_what_it_may_say(azure: Emulated, path: str, value: Any) -> None:
    name = f"waits-{abs(hash((path, str(value))))}"
    body = changed(registered(azure), path, value)
    answer = azure.call("PUT", f"/jobs/{name}", {"properties": body})
    assert answer.status_code == 201, answer.text
    again = azure.job(name)["properties"]
    assert {key: again[key] for key in body if key not in ("outputs", "services")} == {
        key: value for key, value in body.items() if key not in ("outputs", "services")
    }


def test_a_name_that_is_taken(azure: Emulated) -> None:
    body = registered(azure)
    assert azure.call("PUT", "/jobs/waits-twice", {"properties": body}).status_code == 201
    assert azure.call("PUT", "/jobs/waits-twice", {"properties": body}).status_code == 200
    told = {**body, "tags": {"cloudtrain_run": "r", "more": "x"}, "description": "of the second"}
    assert azure.call("PUT", "/jobs/waits-twice", {"properties": told}).status_code == 200
    now = azure.job("waits-twice")["properties"]
    assert (now["description"], now["tags"]) == ("of the second", {"cloudtrain_run": "r", "more": "x"})
    other = azure.call("PUT", "/jobs/waits-twice", {"properties": {**body, "command": "python3 -u launch.py"}})
    error = other.json()["error"]
    assert (other.status_code, error["code"]) == (400, "UserError")
    assert "already exists" in error["message"]
    assert "JobPropertyImmutable" in json.dumps(error["innerError"])


def _without_token(call: Callable[..., requests.Response]) -> requests.Response:
    return call("GET", "/jobs/x", headers={"Authorization": ""})


def _unversioned(call: Callable[..., requests.Response]) -> requests.Response:
    return call("GET", "/jobs/x", params={"api-version": ""})


def _no_json(call: Callable[..., requests.Response]) -> requests.Response:
    return call("PUT", "/jobs/x", data=b"{")


def _no_call(call: Callable[..., requests.Response]) -> requests.Response:
    return call("GET", "/schedules")


@pytest.mark.parametrize(
    ("ask", "status", "code"),
    [
        (_without_token, 401, "AuthenticationFailed"),
        (_unversioned, 400, "MissingApiVersionParameter"),
        (_no_json, 400, "BadRequest"),
        (_no_call, 404, "ResourceNotFound"),
    ],
)
def test_calls(azure: Emulated, ask: Callable[..., requests.Response], status: int, code: str) -> None:
    answer = ask(azure.call)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_another_workspace(azure: Emulated) -> None:
    from tests.emulator.azureml.emulated import client, vendor

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOUDTRAIN_AZUREML_WORKSPACE", "other")
        exceptions = vendor() and __import__("azure.core.exceptions", fromlist=["x"])
        with pytest.raises(exceptions.ResourceNotFoundError, match="other"):
            client().jobs.get("x")
