"""A workspace to talk to: the service's surface, and Azurite for all that is blobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.azureml.service import Service, served
from tests.clients.azureml.storage import Storage, azurite
from tests.providers.azureml.vendor import needed


@pytest.fixture(scope="session")
def blobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    with azurite(tmp_path_factory.mktemp("azurite")) as storage:
        yield storage


@pytest.fixture
def vendor() -> None:
    """azure-ai-ml, which takes seconds to load: only where jobs are made."""
    needed()


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    service = Service()
    with served(service, tmp_path) as authority:
        monkeypatch.setenv("CLOUDTRAIN_ENDPOINT_AZUREML", service.url)
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority))
        monkeypatch.delenv("AZUREML_CURRENT_CLOUD", raising=False)
        yield service
    assert not service.complaints


@pytest.fixture
def client(service: Service, account: dict[str, str]) -> Iterator[Any]:
    from cloudtrain.providers import registry

    client: Any = registry.connect("azureml", account)
    yield client
    client.close()


@pytest.fixture
def account() -> dict[str, str]:
    from tests.clients.azureml.service import ACCOUNT

    return dict(ACCOUNT)


@pytest.fixture
def workspace(service: Service, blobs: Storage, monkeypatch: pytest.MonkeyPatch) -> Service:
    """The service with its storage account."""
    service.place_of_code = blobs.place_of_code
    service.datastores["workspaceblobstore"] = blobs.datastore(blobs.container())
    service.secrets["workspaceblobstore"] = {"secretsType": "AccountKey", "key": blobs.key}
    monkeypatch.setenv("CLOUDTRAIN_ENDPOINT_BLOB", f"{blobs.url}/{{}}")
    return service
