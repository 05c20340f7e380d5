"""The workspace's storage account: containers and blobs of one Blob server, by Microsoft's own client."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from cloudtrain.errors import MissingError
from cloudtrain.providers.registry import EXTRAS
from cloudtrain.providers.vendor import importing

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The well-known ones that every Azurite has."""
_SAS_DAYS = 7
_AT_A_TIME = 8
_PIECE = 4 << 20
"""Most bytes that one append takes."""


class Place(NamedTuple):
    """A folder in a container, or a single blob."""

    container: str
    path: str
    """Without slashes at its ends; "" is the container itself."""

    def blob(self, name: str) -> str:
        """The name of the blob at ``name`` below it."""
        return f"{self.path}/{name}" if self.path else name

    def holds(self, other: Place) -> bool:
        """Whether ``other`` is this one or lies in it."""
        within = self.path in ("", other.path) or other.path.startswith(f"{self.path}/")
        return self.container == other.container and within


def load_client() -> tuple[Any, Any]:
    """Microsoft's client for blobs, and the module of its errors. Raises MissingError."""
    try:
        with importing():
            from azure.core import exceptions
            from azure.storage import blob
    except ImportError as error:
        raise MissingError(f"azure-storage-blob cannot be loaded: {error}", hint=EXTRAS["azureml"]) from error
    logging.getLogger("azure.core.pipeline.policies.http_logging_policy").setLevel(logging.WARNING)
    return blob, exceptions


class Blobs:
    """One account. May be used by many threads."""

    def __init__(self, url: str, account: str, key: str) -> None:
        """``url``: the server's, which has the account's name as the first step of every path. Raises MissingError
        without Microsoft's client."""
        self._sdk, errors = load_client()
        self._exists, self._missing = errors.ResourceExistsError, errors.ResourceNotFoundError
        self.failed: type[Exception] = errors.HttpResponseError
        self.account, self.key = account, key
        self.url = f"{url}/{account}"
        self._service = self._sdk.BlobServiceClient(self.url, credential=key, use_env_settings=False)

    def close(self) -> None:
        """Let go of the connections."""
        self._service.close()

    def make(self, container: str) -> None:
        """Create a container; no matter if it is there."""
        try:
            self._service.create_container(container)
        except self._exists:
            pass

    def has(self, place: Place) -> bool:
        """Whether there is a blob of that very name."""
        return bool(self._blob(place).exists())

    def names(self, place: Place) -> Iterator[str]:
        """Names of all blobs below the folder, seen from it."""
        prefix = f"{place.path}/" if place.path else ""
        for name in self._service.get_container_client(place.container).list_blob_names(name_starts_with=prefix):
            yield name[len(prefix) :]

    def fetch(self, place: Place, file: Path) -> None:
        """Write one blob to a file."""
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as out:
            self._blob(place).download_blob().readinto(out)

    def fetch_all(self, place: Place, names: Iterable[str], folder: Path) -> None:
        """Write blobs below a folder there into one here, several at a time; those whose name leads out of it are left
        where they are."""
        inner = ((Place(place.container, place.blob(name)), folder / name) for name in names if _is_inside(name))
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            for fetched in [pool.submit(self.fetch, *each) for each in inner]:
                fetched.result()

    def put(self, place: Place, file: Path) -> None:
        """Write a file over a blob. Raises OSError if it is gone or a link, ``failed`` if it changes meanwhile."""
        with open(file, "rb", opener=_no_link) as content:
            self._blob(place).upload_blob(content, length=os.fstat(content.fileno()).st_size, overwrite=True)

    def remove(self, place: Place) -> None:
        """Delete a blob; no matter if it is gone."""
        try:
            self._blob(place).delete_blob()
        except self._missing:
            pass

    def begin(self, place: Place) -> None:
        """Make an empty blob that can be appended to."""
        self._blob(place).create_append_blob(self._sdk.ContentSettings(content_type="text/plain; charset=utf-8"))

    def append(self, place: Place, content: bytes) -> None:
        """Put bytes to its end."""
        for start in range(0, len(content), _PIECE):
            self._blob(place).append_block(content[start : start + _PIECE])

    def signed(self, place: Place, rights: str) -> str:
        """URL of a container (``path`` "") or blob by which anyone may do what ``rights`` say, for some days."""
        until = datetime.now(timezone.utc) + timedelta(days=_SAS_DAYS)
        make = self._sdk.generate_blob_sas if place.path else self._sdk.generate_container_sas
        names = tuple(place) if place.path else (place.container,)
        token = make(self.account, *names, account_key=self.key, permission=rights, expiry=until)
        return f"{self.url}/{'/'.join(quote(name) for name in names)}?{token}"

    def _blob(self, place: Place) -> Any:
        return self._service.get_blob_client(place.container, place.path)


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)


def _is_inside(name: str) -> bool:
    """Whether a blob's name is a path below the folder, as a file system reads it."""
    return not {"", ".", ".."} & set(name.split("/"))
