"""Azurite as the storage account of a workspace, filled and looked into with azure-storage-blob."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from cloudtrain.emulator import servers
from cloudtrain.emulator.azureml.blobs import ACCOUNT, KEY
from cloudtrain.errors import MissingError
from tests.local.project import require


class Storage:
    """The account."""

    def __init__(self, url: str) -> None:
        from azure.storage.blob import BlobServiceClient

        self.url = url
        self.key = KEY
        self.service = BlobServiceClient(f"{url}/{ACCOUNT}", credential=KEY)
        self.places: list[str] = []

    def container(self) -> str:
        """A new one."""
        name = f"c{uuid.uuid4().hex}"
        self.service.create_container(name)
        return name

    def datastore(self, container: str, **changes: Any) -> dict[str, Any]:
        """Its ``properties``, as the service has them."""
        return {
            "datastoreType": "AzureBlob",
            "accountName": ACCOUNT,
            "containerName": container,
            "endpoint": "core.windows.net",
            "protocol": "https",
            "credentials": {"credentialsType": "AccountKey"},
            **changes,
        }

    def place_of_code(self, _: str) -> tuple[str, str]:
        """A container for a snapshot: its URI, and the address by which it can be written."""
        from azure.storage.blob import generate_container_sas

        name = self.container()
        self.places.append(name)
        until = datetime.now(timezone.utc) + timedelta(hours=1)
        right = generate_container_sas(ACCOUNT, name, account_key=KEY, permission="rcw", expiry=until)
        uri = f"{self.url}/{ACCOUNT}/{name}"
        return uri, f"{uri}?{right}"

    def signed(self, container: str, name: str) -> str:
        """The address of a blob by which anybody may read it."""
        from azure.storage.blob import generate_blob_sas

        until = datetime.now(timezone.utc) + timedelta(hours=1)
        right = generate_blob_sas(ACCOUNT, container, name, account_key=KEY, permission="r", expiry=until)
        return f"{self.service.get_blob_client(container, name).url}?{right}"

    def content(self, container: str) -> dict[str, bytes]:
        """All blobs of a container."""
        client = self.service.get_container_client(container)
        return {name: client.download_blob(name).readall() for name in client.list_blob_names()}

    def put(self, container: str, name: str, content: bytes) -> None:
        """Write a blob over whatever is there."""
        self.service.get_blob_client(container, name).upload_blob(content, overwrite=True)

    def append(self, container: str, name: str, content: bytes) -> None:
        """Put bytes to the end of a log file, which is made if it is not there."""
        blob = self.service.get_blob_client(container, name)
        if not blob.exists():
            blob.create_append_blob()
        if content:
            blob.append_block(content)

    def remove(self, container: str, name: str) -> None:
        """Delete a blob."""
        self.service.get_blob_client(container, name).delete_blob()


@contextmanager
def azurite(folder: Path) -> Iterator[Storage]:
    """Runs it; skips where it is not installed."""
    try:
        server = servers.azurite(folder)
    except MissingError as error:
        require(False, str(error))
        raise
    try:
        server.wait()
        storage = Storage(server.url)
        yield storage
        storage.service.close()
    finally:
        server.close()
