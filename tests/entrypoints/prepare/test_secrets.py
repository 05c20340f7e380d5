"""Secrets from real HTTP servers that speak as the three stores do; what is retried, what is refused, what is said."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import socket
import subprocess
import sys
import urllib.parse
from pathlib import Path

import pytest

from cloudtrain_launch import secret_stores
from cloudtrain_launch.errors import LaunchError
from cloudtrain_launch.secret_stores import web
from tests.entrypoints.prepare.server import Answer, Server
from tests.local.project import require

VALUE = "s3cr3t-välue"
TOKEN = "/computeMetadata/v1/instance/service-accounts/default/token"
SECRET = "/v1/projects/p-1/secrets/wandb/versions/latest:access"


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "FIRST_PAUSE_SECONDS", 0.001)


def _google(server: Server, *answers: Answer) -> dict[str, str]:
    """Secret Manager and the metadata server; the environment of a job that has one secret."""
    server.answer(TOKEN, Answer({"access_token": "ya29.t0ken", "expires_in": 3599, "token_type": "Bearer"}))
    payload = {
        "name": "projects/1/secrets/wandb/versions/3",
        "payload": {"data": base64.b64encode(VALUE.encode()).decode()},
    }
    server.answer(SECRET, *answers, Answer(payload))
    return {
        "CLOUDTRAIN_SECRETREF_WANDB_API_KEY": "projects/p-1/secrets/wandb",
        "GCE_METADATA_HOST": server.host,
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER": f"{server.url}/",
    }


def test_google(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    env = _google(server)
    env["CLOUDTRAIN_SECRETREF_OTHER"] = "projects/p-1/secrets/other-1/versions/7"
    server.answer("/v1/projects/p-1/secrets/other-1/versions/7:access", Answer({"payload": {"data": "eA=="}}))
    assert secret_stores.read(env, "vertex") == {"WANDB_API_KEY": VALUE, "OTHER": "x"}
    token, first, second = server.asked  # one token for all
    assert (token.path, token.headers["metadata-flavor"]) == (TOKEN, "Google")
    assert first.headers["authorization"] == second.headers["authorization"] == "Bearer ya29.t0ken"
    assert capsys.readouterr().out == "secrets read: OTHER, WANDB_API_KEY\n"


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_what_may_pass_is_tried_again(status: int, server: Server) -> None:
    env = _google(server, Answer(status=status, headers={"Retry-After": "0"}), Answer(status=status))
    assert secret_stores.read(env, "vertex") == {"WANDB_API_KEY": VALUE}
    assert len(server.asked_for(SECRET)) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_what_will_not_pass_is_not(status: int, server: Server) -> None:
    said = {"error": {"code": status, "message": "Permission 'secretmanager.versions.access' denied", "status": "X"}}
    env = _google(server, Answer(said, status))
    with pytest.raises(LaunchError) as info:
        secret_stores.read(env, "vertex")
    assert str(info.value).startswith(f"secret WANDB_API_KEY (projects/p-1/secrets/wandb): {server.host}: {status} ")
    assert str(info.value).endswith(": Permission 'secretmanager.versions.access' denied")
    assert len(server.asked_for(SECRET)) == 1


def test_a_service_that_stays_down_is_given_up(server: Server) -> None:
    env = _google(server)
    server.answer(SECRET, Answer(status=503))
    with pytest.raises(LaunchError, match=r"secret WANDB_API_KEY .*: 503 Service Unavailable"):
        secret_stores.read(env, "vertex")
    assert len(server.asked_for(SECRET)) == 6


def test_nobody_there(server: Server) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        env = {**_google(server), "GCE_METADATA_HOST": f"127.0.0.1:{taken.getsockname()[1]}"}
        with pytest.raises(LaunchError, match=r"secrets WANDB_API_KEY: no token: 127\.0\.0\.1:\d+: .*refused"):
            secret_stores.read(env, "vertex")


@pytest.mark.parametrize("token", ["ya29\nt0ken", "ya29.t\u00f6\u4e2d"])
def test_a_token_that_cannot_be_sent_is_not_shown(token: str, server: Server) -> None:
    env = _google(server)
    server.answer(TOKEN, Answer({"access_token": token}))
    with pytest.raises(LaunchError, match=r"secret WANDB_API_KEY .* cannot be asked with the token") as info:
        secret_stores.read(env, "vertex")
    assert "ya29" not in str(info.value) and info.value.__cause__ is None


def test_a_token_does_not_follow_a_redirect(server: Server) -> None:
    env = _google(server, Answer(status=302, headers={"Location": f"{server.url}/elsewhere"}))
    with pytest.raises(LaunchError, match="302"):
        secret_stores.read(env, "vertex")
    assert server.asked_for("/elsewhere") == []


@pytest.mark.parametrize(
    "answer",
    [
        Answer(f'{{"payload": "{VALUE}" oops'.encode()),
        Answer(json.dumps([VALUE]).encode()),
        Answer({"payload": VALUE}),
        Answer({"payload": {"data": VALUE}}),
        Answer({"payload": {"data": base64.b64encode(b"\xff" + VALUE.encode()).decode()}}),
        Answer({"payload": {"data": base64.b64encode(f"a\0{VALUE}".encode()).decode()}}),
    ],
)
def test_an_answer_that_makes_no_sense_is_never_shown(
    answer: Answer, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    env = _google(server)
    server.answer(SECRET, answer)
    with pytest.raises(LaunchError) as info:
        secret_stores.read(env, "vertex")
    assert "WANDB_API_KEY (projects/p-1/secrets/wandb)" in str(info.value)
    assert VALUE not in str(info.value) and VALUE not in capsys.readouterr().out
    assert info.value.__cause__ is None


@pytest.mark.parametrize(
    "reference",
    ["wandb", "projects/p/secrets/", "projects/p/secrets/s/versions/", "projects/p/secrets/s/../../x", "https://x/y"],
)
def test_references_that_are_none_of_googles(reference: str, server: Server) -> None:
    with pytest.raises(LaunchError, match=r"secret A: its reference is not projects/PROJECT/secrets/SECRET"):
        secret_stores.read({"CLOUDTRAIN_SECRETREF_A": reference, "GCE_METADATA_HOST": server.host}, "vertex")
    assert server.asked == []


def _azure(server: Server, identity: dict[str, str]) -> dict[str, str]:
    server.answer("/token", Answer({"access_token": "eyJ.t0ken", "expires_on": "1893456000", "token_type": "Bearer"}))
    server.answer("/metadata/identity/oauth2/token", Answer({"access_token": "eyJ.t0ken"}))
    server.answer("/secrets/wandb", Answer({"value": VALUE, "id": "https://v.vault.azure.net/secrets/wandb/1"}))
    return {"CLOUDTRAIN_SECRETREF_WANDB_API_KEY": f"{server.url}/secrets/wandb", **identity}


@pytest.mark.parametrize(
    ("identity", "asked", "header"),
    [
        (
            {"MSI_ENDPOINT": "{}/token", "MSI_SECRET": "m", "DEFAULT_IDENTITY_CLIENT_ID": "c-1"},
            "/token?api-version=2017-09-01&resource=https%3A%2F%2Fvault.azure.net&clientid=c-1",
            ("secret", "m"),
        ),
        (
            {"IDENTITY_ENDPOINT": "{}/token", "IDENTITY_HEADER": "h", "MSI_ENDPOINT": "{}/token", "MSI_SECRET": "m"},
            "/token?api-version=2019-08-01&resource=https%3A%2F%2Fvault.azure.net",
            ("x-identity-header", "h"),
        ),
        (
            {"AZURE_POD_IDENTITY_AUTHORITY_HOST": "{}/", "DEFAULT_IDENTITY_CLIENT_ID": "c-1"},
            "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fvault.azure.net&client_id=c-1",
            ("metadata", "true"),
        ),
        (
            {"AZUREML_OBO_ENABLED": "True", "OBO_ENDPOINT": "{}/token", "MSI_ENDPOINT": "{}/no", "MSI_SECRET": "m"},
            "/token?resource=https%3A%2F%2Fvault.azure.net",
            ("connection", "close"),
        ),
    ],
    ids=["azureml", "app-service", "machine", "user"],
)
def test_azure(identity: dict[str, str], asked: str, header: tuple[str, str], server: Server) -> None:
    env = _azure(server, {name: value.format(server.url) for name, value in identity.items()})
    env["CLOUDTRAIN_SECRETREF_SAME"] = f"{server.url}/secrets/wandb/0123456789abcdef"
    assert secret_stores.read(env, "azureml") == {"WANDB_API_KEY": VALUE, "SAME": VALUE}
    token, first, second = server.asked
    assert (_query(token.path), token.headers[header[0]]) == (_query(asked), header[1])
    assert first.path == "/secrets/wandb?api-version=7.4"
    assert second.path == "/secrets/wandb/0123456789abcdef?api-version=7.4"
    assert first.headers["authorization"] == "Bearer eyJ.t0ken"


@pytest.mark.parametrize("identity", ["azureml", "app-service", "machine", "user"])
def test_azures_own_library_asks_for_the_token_in_the_same_way(
    identity: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    require(importlib.util.find_spec("azure.identity") is not None, "azure-identity is not installed")
    variables = {
        "azureml": {"MSI_ENDPOINT": f"{server.url}/token", "MSI_SECRET": "m"},
        "app-service": {"IDENTITY_ENDPOINT": f"{server.url}/token", "IDENTITY_HEADER": "h"},
        "machine": {"AZURE_POD_IDENTITY_AUTHORITY_HOST": server.url},
        "user": {"AZUREML_OBO_ENABLED": "True", "OBO_ENDPOINT": f"{server.url}/token"},
    }[identity]
    secret_stores.read({**_azure(server, variables), "DEFAULT_IDENTITY_CLIENT_ID": "c-1"}, "azureml")
    token = Answer(
        {"access_token": "t", "expires_on": "1893456000", "expires_in": "3600", "resource": "r", "token_type": "Bearer"}
    )
    server.answer("/token", token)
    server.answer("/metadata/identity/oauth2/token", token)
    credential = "from azure.identity import ManagedIdentityCredential\nwith ManagedIdentityCredential(client_id='c-1')"
    if identity == "user":
        require(importlib.util.find_spec("azure.ai.ml") is not None, "azure-ai-ml is not installed")
        credential = "from azure.ai.ml.identity import AzureMLOnBehalfOfCredential as User\nwith User()"
    script = f"{credential} as credential:\n    credential.get_token('https://vault.azure.net/.default')\n"
    ran = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    asked, expected = (asked for asked in server.asked if "token" in asked.path)
    assert _query(asked.path) == _query(expected.path)
    header = {"azureml": "secret", "app-service": "x-identity-header", "machine": "metadata", "user": "host"}[identity]
    assert asked.headers[header] == expected.headers[header]


def _query(path: str) -> tuple[str, dict[str, list[str]]]:
    before, _, query = path.partition("?")
    return before, urllib.parse.parse_qs(query)


@pytest.mark.parametrize(
    "reference",
    [
        "https://evil.example/secrets/x", "https://v.vault.azure.net.evil.example/secrets/x", "wandb",
        "https://v.vault.azure.net/keys/x", "http://v.vault.azure.net/secrets/x", "https://v.vault.azure.net/secrets/",
        "https://u@v.vault.azure.net/secrets/x", "http://127.0.0.1.evil.example/secrets/x",
    ],
)  # fmt: skip
def test_nobody_but_a_vault_gets_the_token(reference: str, server: Server) -> None:
    env = _azure(server, {"MSI_ENDPOINT": f"{server.url}/token", "MSI_SECRET": "m"})
    with pytest.raises(
        LaunchError, match=r"secret WANDB_API_KEY: its reference is not https://VAULT\.vault\.azure\.net/"
    ):
        secret_stores.read({**env, "CLOUDTRAIN_SECRETREF_WANDB_API_KEY": reference}, "azureml")
    assert server.asked == []


# In a process of its own, as on a node; botocore leaves its connections to the interpreter's end.
READ = """
import json, os, sys
from cloudtrain_launch import secret_stores
from cloudtrain_launch.errors import LaunchError
try:
    print(json.dumps(secret_stores.read(os.environ, "sagemaker")))
except LaunchError as error:
    print("LaunchError", error)
"""


def _aws(server: Server, references: dict[str, str], **env: str) -> str:
    require(importlib.util.find_spec("boto3") is not None, "boto3 is not installed")
    given = {
        "AWS_ENDPOINT_URL": server.url, "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "k",
        "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "TRAINING_JOB_ARN": "arn:aws:sagemaker:eu-west-1:111122223333:training-job/x", **env,
        **{f"CLOUDTRAIN_SECRETREF_{name}": reference for name, reference in references.items()},
    }  # fmt: skip
    left = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    ran = subprocess.run(
        [sys.executable, "-c", READ], env={**left, **given}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()[-1]


def test_aws(server: Server) -> None:
    server.answer("/", Answer({"SecretString": VALUE, "Parameter": {"Value": "from ssm"}}))
    arn = "arn:aws:secretsmanager:us-east-2:111122223333:secret:wandb-AbCdEf"
    parameter = "arn:aws:ssm:ap-south-1:111122223333:parameter/team/key"
    read = json.loads(_aws(server, {"BY_ARN": arn, "BY_NAME": "team/wandb", "SSM": parameter}))
    assert read == {"BY_ARN": VALUE, "BY_NAME": VALUE, "SSM": "from ssm"}
    asked: dict[str, list[tuple[str, object]]] = {}
    for one in server.asked:
        region = one.headers["authorization"].split("/")[2]
        asked.setdefault(one.headers["x-amz-target"].partition(".")[2], []).append((region, json.loads(one.body)))
    assert asked["GetParameter"] == [("ap-south-1", {"Name": parameter, "WithDecryption": True})]
    wanted = [("us-east-2", {"SecretId": arn}), ("eu-west-1", {"SecretId": "team/wandb"})]
    assert sorted(asked["GetSecretValue"], key=str) == sorted(wanted, key=str)


def test_aws_that_refuses(server: Server) -> None:
    server.answer("/", Answer({"__type": "AccessDeniedException", "Message": "not authorized"}, 400))
    said = _aws(server, {"A": "team/wandb"})
    assert said.startswith("LaunchError secret A (team/wandb): An error occurred (AccessDeniedException)")
    assert said.endswith("not authorized; the job's role must be allowed to read it")


def test_aws_that_is_busy(server: Server) -> None:
    busy = Answer({"__type": "ThrottlingException", "Message": "Rate exceeded"}, 400)
    server.answer("/", busy, Answer({"SecretString": VALUE}))
    assert json.loads(_aws(server, {"A": "team/wandb"})) == {"A": VALUE}


def test_aws_bytes_are_no_variable(server: Server) -> None:
    server.answer("/", Answer({"SecretBinary": base64.b64encode(VALUE.encode()).decode()}))
    assert _aws(server, {"A": "team/wandb"}) == "LaunchError secret A (team/wandb) holds bytes (SecretBinary), not text"


def test_an_arn_of_something_else(server: Server) -> None:
    said = _aws(server, {"A": "arn:aws:s3:::bucket/key"})
    assert said.endswith("is neither a secret of Secrets Manager nor a parameter of Systems Manager")
    assert server.asked == []


def test_an_image_without_boto3(server: Server, tmp_path: Path) -> None:
    (tmp_path / "boto3.py").write_text("raise ModuleNotFoundError(\"No module named 'boto3'\")\n")
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    said = _aws(server, {"A": "team/wandb"}, PYTHONPATH=os.pathsep.join(paths))
    assert said.startswith("LaunchError secret A (team/wandb): this image has no boto3 (")
    assert "add boto3 to environment.requirements" in said


def test_a_value_that_was_given_is_not_asked_for(server: Server) -> None:
    env = {**_google(server), "CLOUDTRAIN_SECRET_WANDB_API_KEY": "given"}
    assert secret_stores.read(env, "vertex") == {}
    assert server.asked == []
