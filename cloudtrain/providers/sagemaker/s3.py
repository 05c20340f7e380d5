"""S3 by URIs: what lies in a folder, and what is in a small file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from cloudtrain.providers.paging import Tokens
from cloudtrain.providers.reading import mappings, text, whole
from cloudtrain.providers.sagemaker.errors import called
from cloudtrain.providers.sagemaker.places import SCHEME, folder
from cloudtrain.providers.sagemaker.refusals import NotThere


class Stored(NamedTuple):
    """An object below a folder."""

    path: str
    """Below the folder."""
    size: int
    uri: str


def split(uri: str) -> tuple[str, str]:
    """Bucket and key."""
    bucket, _, key = uri.removeprefix(SCHEME).partition("/")
    return bucket, key


def stored(s3: Any, uri: str, region: str) -> Iterator[Stored]:
    """All objects below the folder, but for the empty ones that stand for folders. One call for each 1,000."""
    bucket, prefix = split(folder(uri))
    tokens, token = Tokens(f"list {folder(uri)}"), ""
    while True:
        page = called(
            s3.list_objects_v2,
            f"list {folder(uri)}",
            region,
            Bucket=bucket,
            Prefix=prefix,
            **({"ContinuationToken": token} if token else {}),
        )
        for _, found in mappings(page, "Contents"):
            key = text(found, "Key")
            if key.startswith(prefix) and not key.endswith("/"):
                yield Stored(key.removeprefix(prefix), whole(found, "Size") or 0, f"{SCHEME}{bucket}/{key}")
        token = tokens.next(text(page, "NextContinuationToken"))
        if not token:
            return


def content(s3: Any, uri: str, most: int, region: str) -> bytes | None:
    """The first ``most`` bytes of an object; None if there is none."""
    bucket, key = split(uri)

    def read() -> bytes:
        with contextlib.closing(s3.get_object(Bucket=bucket, Key=key)["Body"]) as body:
            found: bytes = body.read(most)
            return found

    try:
        found: bytes = called(read, f"read {uri}", region)
    except NotThere:
        return None
    return found


def exists(s3: Any, uri: str, region: str) -> bool:
    """Whether there is such an object."""
    bucket, key = split(uri)
    try:
        called(s3.head_object, f"look for {uri}", region, Bucket=bucket, Key=key)
    except NotThere:
        return False
    return True
