"""An account to talk to."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from cloudtrain.providers import registry
from cloudtrain.providers.port import Client
from tests.clients.sagemaker.aws import Aws, served
from tests.local.project import require

BUCKET = "my-sagemaker-bucket"
REGION = "eu-west-1"


@pytest.fixture(scope="session")
def server() -> Iterator[tuple[Aws, str]]:
    try:
        importlib.import_module("moto.moto_server.werkzeug_app")
    except ModuleNotFoundError as error:
        require(False, f"moto's server is not installed: {error}")
    app = Aws()
    with served(app) as url:
        yield app, url


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some, and nothing of the user's own."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_RETRY_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "3")  # what waits long for nothing need not wait so often
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere/config")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere/credentials")


@pytest.fixture
def aws(server: tuple[Aws, str], credentials: None, monkeypatch: pytest.MonkeyPatch) -> Aws:
    app, url = server
    app.begin()
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    return app


@pytest.fixture(scope="session")
def made(server: tuple[Aws, str]) -> Iterator[dict[str, Any]]:
    """boto3's own clients, with which tests look and prepare."""
    import boto3

    keys = {"aws_access_key_id": "AKIATEST", "aws_secret_access_key": "secret", "endpoint_url": server[1]}
    made = {name: boto3.session.Session().client(name, region_name=REGION, **keys) for name in ("s3", "logs")}
    yield made
    for client in made.values():
        client.close()


@pytest.fixture
def boto(aws: Aws, made: dict[str, Any]) -> dict[str, Any]:
    """The same, when the bucket is there."""
    made["s3"].create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    aws.calls.clear()
    return made


@pytest.fixture(scope="session")
def connected() -> dict[str, Client]:
    return {}


@pytest.fixture
def client(aws: Aws, connected: dict[str, Client]) -> Client:
    """One for all tests: it keeps nothing, and loading AWS's models takes its time."""
    if not connected:
        connected["it"] = registry.connect("sagemaker", {"region": REGION})
    return connected["it"]


def plain(value: Any) -> Any:
    """Through JSON and back."""
    return json.loads(json.dumps(value))
