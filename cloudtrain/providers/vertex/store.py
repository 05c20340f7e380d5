"""Cloud Storage: objects below a ``gs://`` folder, over Google's client.

Every try of a call has a timeout, and what failed for the moment is tried again by Google's client itself, which goes
on where a connection was lost. Preconditions make that safe for uploads.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

from cloudtrain.errors import RefusedError
from cloudtrain.providers.paging import Tokens
from cloudtrain.providers.vertex.endpoints import Endpoints
from cloudtrain.providers.vertex.errors import Told
from cloudtrain.providers.vertex.places import SCHEME

TIMEOUT = (10.0, 60.0)
"""To connect, and to hear something; seconds."""
_PATIENCE_SECONDS = 120.0


class Stored(NamedTuple):
    """An object below a folder."""

    bucket: str
    name: str
    path: str
    """Its name behind that of the folder."""
    size: int
    generation: int
    """Changes with the content."""
    created: float
    """Seconds since the epoch."""


class Store:
    """What one account sees of Cloud Storage."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints

    def below(self, folder: str) -> Iterator[Stored]:
        """All objects below a folder, in the order of their names. The empty ones that stand for folders are left out.

        Raises RefusedError if there is no such bucket.
        """
        bucket, prefix = split(folder)
        with self.told(bucket):
            found = self.client.list_blobs(bucket, prefix=prefix, timeout=TIMEOUT, retry=patience())
            for blob in _all(found, Tokens(f"list {folder}")):
                path = blob.name[len(prefix) :]
                if path and not path.endswith("/"):
                    created = blob.time_created.timestamp() if blob.time_created else 0.0
                    yield Stored(bucket, blob.name, path, blob.size or 0, blob.generation or 0, created)

    def blob(self, uri: str) -> Any:
        """An object, there or not; nothing is asked."""
        bucket, name = split(uri)
        return self.client.bucket(bucket).blob(name)

    def content(self, uri: str, most: int) -> bytes | None:
        """The content of a small object, at most ``most`` bytes of it; None if there is none."""
        from google.api_core.exceptions import NotFound, RequestRangeNotSatisfiable

        blob = self.blob(uri)
        with self.told(blob.bucket.name):
            try:
                found: bytes = blob.download_as_bytes(
                    end=most - 1, raw_download=True, timeout=TIMEOUT, retry=patience(), checksum=None
                )
            except NotFound:
                return None
            except RequestRangeNotSatisfiable:  # it is empty
                return b""
        return found

    def told(self, bucket: str) -> Told:
        """Around calls that are about a bucket."""
        return _AboutBucket(bucket)

    @cached_property
    def client(self) -> Any:
        """Google's own client; its calls may be made from several threads."""
        return self._endpoints.store()


class _AboutBucket(Told):
    def __init__(self, bucket: str) -> None:
        super().__init__(f"Cloud Storage (bucket {bucket})")
        self._bucket = bucket

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        from google.api_core.exceptions import NotFound

        if isinstance(error, NotFound):
            raise RefusedError(
                f"there is no bucket {SCHEME}{self._bucket}, or nothing of that name in it",
                hint=f"gcloud storage buckets create {SCHEME}{self._bucket} --location=REGION, or set vertex.bucket",
                cause="data",
            ) from error
        super().__exit__(kind, error, trace)


def _all(found: Any, tokens: Tokens) -> Iterator[Any]:
    """The blobs of Google's own iterator, which would follow any token."""
    for page in found.pages:
        tokens.next(found.next_page_token or "")
        yield from page


def patience(seconds: float = _PATIENCE_SECONDS) -> Any:
    """Google's own rules for what may be tried again, jittered; no new try after ``seconds``."""
    from google.cloud.storage.retry import DEFAULT_RETRY

    return DEFAULT_RETRY.with_timeout(seconds)


def split(uri: str) -> tuple[str, str]:
    """``gs://bucket/name`` as bucket and name."""
    bucket, _, name = uri.removeprefix(SCHEME).partition("/")
    return bucket, name
