"""S3 by URIs: what lies in a folder, and what is in a small file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from cloudtrain.providers.sagemaker.errors import NotThere, asking
from cloudtrain.providers.sagemaker.places import SCHEME, folder

PRESENT = "PreconditionFailed"
"""The service's word for: an object of this name is there already."""
CONFLICT = "ConditionalRequestConflict"
"""Its word for: another request is just writing it."""


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
    with asking(f"list {folder(uri)}", region):
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
            for found in page.get("Contents", ()):
                key = found["Key"]
                if not key.endswith("/"):
                    yield Stored(key.removeprefix(prefix), found["Size"], f"{SCHEME}{bucket}/{key}")


def content(s3: Any, uri: str, most: int, region: str) -> bytes | None:
    """The first ``most`` bytes of an object; None if there is none."""
    bucket, key = split(uri)
    try:
        with asking(f"read {uri}", region):
            found: bytes = s3.get_object(Bucket=bucket, Key=key)["Body"].read(most)
    except NotThere:
        return None
    return found


def exists(s3: Any, uri: str, region: str) -> bool:
    """Whether there is such an object."""
    bucket, key = split(uri)
    try:
        with asking(f"look for {uri}", region):
            s3.head_object(Bucket=bucket, Key=key)
    except NotThere:
        return False
    return True
