"""``s3://bucket/prefix`` as the service takes it, and the objects below it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple


class Place(NamedTuple):
    """A bucket, and how keys in it begin."""

    bucket: str
    prefix: str

    @classmethod
    def of(cls, uri: str) -> Place:
        """Also of the ``https://bucket/prefix`` that the service's pattern allows."""
        bucket, _, prefix = uri.partition("://")[2].partition("/")
        return cls(bucket, prefix)

    @property
    def folder(self) -> Place:
        """The same with a slash at its end, or the whole bucket."""
        prefix = self.prefix.strip("/")
        return self._replace(prefix=f"{prefix}/" if prefix else "")

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}"


class Object(NamedTuple):
    """What a list of objects tells of one."""

    key: str
    size: int


def objects(s3: Any, place: Place) -> Iterator[Object]:
    """All whose keys begin with the prefix, in the order of keys. Raises botocore's ClientError without the bucket."""
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=place.bucket, Prefix=place.prefix)
    for page in pages:
        yield from (Object(item["Key"], item["Size"]) for item in page.get("Contents", ()))


def has_objects(s3: Any, place: Place) -> bool:
    """Whether there is one at least."""
    return bool(s3.list_objects_v2(Bucket=place.bucket, Prefix=place.prefix, MaxKeys=1).get("Contents"))


def region_of(s3: Any, bucket: str) -> str:
    """Where a bucket is. Raises botocore's ClientError if it is nowhere."""
    return s3.get_bucket_location(Bucket=bucket)["LocationConstraint"] or "us-east-1"
