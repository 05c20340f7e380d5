"""Files in the datastores that a job's inputs and outputs name, over azure-storage-blob."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import ContainerClient, ExponentialRetry

from cloudtrain.errors import RefusedError
from cloudtrain.providers.azureml.calls import CONNECT_SECONDS, READ_SECONDS, TRIES
from cloudtrain.providers.azureml.endpoints import Endpoints
from cloudtrain.providers.azureml.errors import translated
from cloudtrain.providers.azureml.sending import File, send
from cloudtrain.providers.landing import landing
from cloudtrain.providers.port import Progress
from cloudtrain.providers.reading import section, text
from cloudtrain.spec.problems import shown

if TYPE_CHECKING:
    from cloudtrain.providers.azureml.workspace import Workspace

_MIB = 1 << 20
_BLOCK = 4 * _MIB
_DATASTORE = r"azureml://(?:[^?]*/)?datastores/(?P<store>[^/?]+)/paths/(?P<path>[^?]*)"
"""Short as we write it, or with subscription, group and workspace before, as the service may give it back."""
KINDS = ("AzureBlob", "AzureDataLakeGen2")
"""Datastores whose files a blob client reads; the second is read as blobs, too, under its other address."""


class Place(NamedTuple):
    """A folder in a datastore."""

    store: str
    path: str
    """With a slash at its end; "" for the whole of it."""


class Blob(NamedTuple):
    """A file in a datastore."""

    store: str
    name: str
    size: int


def place_of(uri: str) -> Place | None:
    """The folder that an output's URI names; None for what is no path in a datastore, such as a data asset."""
    found = re.fullmatch(_DATASTORE, uri)
    if not found:
        return None
    path = found["path"].strip("/")
    return Place(found["store"], f"{path}/" if path else "")


class Store:
    """The datastores of one workspace, each opened once."""

    def __init__(self, workspace: Workspace, endpoints: Endpoints, credential: Any) -> None:
        self._workspace = workspace
        self._endpoints = endpoints
        self._credential = credential
        self._open: dict[str, ContainerClient] = {}

    def blobs(self, place: Place) -> Iterator[Blob]:
        """All files below a folder; none where nothing has been written. Folders' own entries are passed by."""
        container = self._container(place.store)
        with translated(f"list the files in datastore {place.store}"):
            try:
                for blob in container.list_blobs(name_starts_with=place.path, include=["metadata"]):
                    is_folder = blob.name.endswith("/") or (blob.metadata or {}).get("hdi_isfolder") == "true"
                    if not is_folder:
                        yield Blob(place.store, blob.name, blob.size)
            except ResourceNotFoundError:
                return

    def put(self, place: Place, files: Sequence[File], progress: Progress) -> None:
        """Send files to a folder; what is there is written over."""
        container = self._container(place.store)
        with translated(f"send files to datastore {place.store}"):
            send(container, place.path.rstrip("/"), files, progress)

    def write(self, place: Place, name: str, content: bytes) -> None:
        """Put a small file into a folder, over whatever is there."""
        container = self._container(place.store)
        with translated(f"send {name} to datastore {place.store}"):
            container.upload_blob(f"{place.path}{name}", content, overwrite=True)

    def read(self, place: Place, name: str, most: int) -> bytes | None:
        """The first ``most`` bytes of a file in a folder; None where there is none."""
        container = self._container(place.store)
        with translated(f"read {name} in datastore {place.store}"):
            try:
                return bytes(container.download_blob(f"{place.path}{name}", offset=0, length=most).readall())
            except ResourceNotFoundError:
                return None

    def fetch(self, blob: Blob, folder: Path, path: str, progress: Progress) -> None:
        """Write a file below ``folder``. Raises SpecError for a path that leads elsewhere."""
        doing = f"fetch {shown(path)} from datastore {blob.store}"
        container = self._container(blob.store)
        with landing(folder, path) as file, translated(doing):
            try:
                content = container.download_blob(
                    blob.name, max_concurrency=4, progress_hook=lambda done, total: progress(done, total or blob.size)
                )
                content.readinto(file)
            except ResourceNotFoundError:
                raise RefusedError(f"cannot {doing}: it is not there any more") from None

    def close(self) -> None:
        """Give the connections back."""
        for container in self._open.values():
            container.close()

    def _container(self, name: str) -> ContainerClient:
        if name not in self._open:
            self._open[name] = self._opened(name)
        return self._open[name]

    def _opened(self, name: str) -> ContainerClient:
        found = self._workspace.datastore(name)
        said = section(found, "properties")
        kind = text(said, "datastoreType")
        if found is None:
            raise RefusedError(f"there is no datastore {shown(name)} in workspace {self._workspace.name}")
        if kind not in KINDS:
            raise RefusedError(
                f"datastore {name} is of the kind {shown(kind)}, which cloudtrain can neither read nor write",
                hint="Name a blob datastore (azureml.datastore), or fetch the files by hand.",
            )
        account, container = text(said, "accountName"), text(said, "containerName") or text(said, "filesystem")
        own = f"{text(said, 'protocol') or 'https'}://{account}.blob.{text(said, 'endpoint') or 'core.windows.net'}"
        address = self._endpoints.blobs.replace("{}", account) if self._endpoints.blobs else own
        return ContainerClient(address, container, credential=self._key(name, said), **_options())

    def _key(self, name: str, said: Any) -> Any:
        """A key or token of the datastore's, or who has logged in, where it has none."""
        if text(said, "credentials", "credentialsType") in ("AccountKey", "Sas"):
            secrets = self._workspace.secrets(name)
            if key := text(secrets, "key") or text(secrets, "sasToken"):
                return key
        return self._credential


@contextmanager
def container_at(address: str) -> Iterator[ContainerClient]:
    """A container by an address that holds the right to use it."""
    container = ContainerClient.from_container_url(address, **_options())
    try:
        yield container
    finally:
        container.close()


def _options() -> dict[str, Any]:
    """Blocks are small, so that little has to be sent again; the vendor's own first wait would be 15 s."""
    return {
        "retry_policy": ExponentialRetry(
            initial_backoff=1, increment_base=2, retry_total=TRIES - 2, random_jitter_range=1
        ),
        "connection_timeout": CONNECT_SECONDS,
        "read_timeout": READ_SECONDS,
        "max_single_put_size": _BLOCK,
        "max_block_size": _BLOCK,
        "max_single_get_size": _BLOCK,
        "max_chunk_get_size": _BLOCK,
    }


def source_of(blob: Blob) -> str:
    """As an artefact's ``source``."""
    return json.dumps(blob)


def blob_of(source: str) -> Blob:
    """What ``source_of`` was made of."""
    store, name, size = json.loads(source)
    return Blob(str(store), str(name), int(size))
