"""An account to talk to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cloudtrain.providers import registry
from cloudtrain.providers.port import Client
from tests.clients.vertex.service import Service, by_grpc, by_rest
from tests.clients.vertex.storage import served
from tests.local.project import require
from tests.providers.contexts import ACCOUNTS

PROJECT, REGION = ACCOUNTS["vertex"]["project"], ACCOUNTS["vertex"]["region"]
BUCKET = ACCOUNTS["vertex"]["bucket"]
PARENT = f"projects/{PROJECT}/locations/{REGION}"


@pytest.fixture(autouse=True)
def nothing_of_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "CLOUDTRAIN_ENDPOINT_VERTEX",
                 "CLOUDTRAIN_ENDPOINT_LOGGING", "STORAGE_EMULATOR_HOST"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "gcloud"))
    try:
        import google.cloud.aiplatform_v1.types.custom_job  # noqa: F401
    except ModuleNotFoundError as error:
        require(False, f"Google's packages are not installed: {error}")


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def rest(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both services by REST."""
    with by_rest(service) as url:
        monkeypatch.setenv("CLOUDTRAIN_ENDPOINT_VERTEX", url)
        monkeypatch.setenv("CLOUDTRAIN_ENDPOINT_LOGGING", url)
        yield


@pytest.fixture(params=["rest", "grpc"])
def either(request: pytest.FixtureRequest, service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The job service by both ways."""
    with (by_rest if request.param == "rest" else by_grpc)(service) as url:
        monkeypatch.setenv("CLOUDTRAIN_ENDPOINT_VERTEX", url)
        yield request.param


@pytest.fixture
def connect() -> Callable[[], Client]:
    """A client of the test account."""
    return lambda: registry.connect("vertex", {"project": PROJECT, "region": REGION})


@pytest.fixture(scope="session")
def object_store() -> Iterator[str]:
    with served() as url:
        yield url


@pytest.fixture
def bucket(object_store: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The test account's bucket, empty, by Google's own client."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", object_store)
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    client = storage.Client(project=PROJECT, credentials=AnonymousCredentials())
    made = client.bucket(BUCKET)
    if not made.exists():
        made.create()
    yield made
    for blob in list(made.list_blobs()):
        blob.delete()
    client.close()
