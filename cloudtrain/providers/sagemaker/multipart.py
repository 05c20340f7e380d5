"""A large file to S3, in parts: sent in parallel, and gone on with where an earlier upload was cut off.

What an upload that was not completed has received stays in S3. A part that is there is taken over if its checksum is
that of the same part here: then it does not matter who sent it, and two uploads of one file may share their parts.
Completing names every part by its own tag, so a part that another upload has replaced meanwhile is noticed.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cloudtrain.errors import MissingError
from cloudtrain.providers.sagemaker.errors import code_of

PART_BYTES = 8 << 20
_MOST_PARTS = 10_000
"""The service's limit."""


class Part(NamedTuple):
    """A piece of a file: ``number`` counts from 1."""

    number: int
    start: int
    size: int


def parts_of(size: int) -> list[Part]:
    """How a file of ``size`` bytes is cut: always the same way, so that a later upload finds the same parts."""
    each = PART_BYTES
    while size > each * _MOST_PARTS:
        each *= 2
    return [
        Part(number + 1, start, min(each, size - start)) for number, start in enumerate(range(0, max(size, 1), each))
    ]


class Upload:
    """One upload of one file. Calls of botocore's raise as they do."""

    def __init__(self, s3: Any, bucket: str, key: str, file: Path) -> None:
        self._s3 = s3
        self._where = {"Bucket": bucket, "Key": key}
        self._file = file
        self._parts = parts_of(file.stat().st_size)
        self._tags: dict[int, Mapping[str, Any]] = {}

    def begin(self) -> list[Part]:
        """Go on with an upload that has some of the parts, or begin one. The parts that have to be sent."""
        self._id, self._tags = max(self._unfinished(), key=lambda found: len(found[1]), default=("", {}))
        if not self._id:
            self._id = self._s3.create_multipart_upload(**self._where, ChecksumAlgorithm="CRC32")["UploadId"]
        return [part for part in self._parts if part.number not in self._tags]

    def send(self, part: Part) -> int:
        """Send one part; returns its bytes. May be called by several threads."""
        answer = self._s3.upload_part(
            **self._where,
            UploadId=self._id,
            PartNumber=part.number,
            Body=piece(self._file, part.start, part.size),
            ChecksumAlgorithm="CRC32",
        )
        self._tags[part.number] = answer
        return part.size

    def complete(self) -> None:
        """Put the parts together, unless an object of this name has come to be there."""
        kept = [
            {
                "PartNumber": part.number,
                "ETag": self._tags[part.number]["ETag"],
                **_checksum(self._tags[part.number]),
            }
            for part in self._parts
        ]
        self._s3.complete_multipart_upload(
            **self._where, UploadId=self._id, MultipartUpload={"Parts": kept}, IfNoneMatch="*"
        )

    def abort_all(self) -> None:
        """Remove the parts of every upload of this object that was not completed: they would be billed."""
        for upload in list(self._ids()):
            self._s3.abort_multipart_upload(**self._where, UploadId=upload)

    def _unfinished(self) -> Iterator[tuple[str, dict[int, Mapping[str, Any]]]]:
        """The uploads that were begun, with those of their parts that are the same here."""
        expected = {part.number: part for part in self._parts}
        for upload in self._ids():
            pages = self._s3.get_paginator("list_parts").paginate(**self._where, UploadId=upload)
            there = {found["PartNumber"]: found for found in _listed(pages, "Parts")}
            same = {n: found for n, found in there.items() if n in expected and self._is_same(expected[n], found)}
            if same:
                yield upload, same

    def _ids(self) -> Iterator[str]:
        pages = self._s3.get_paginator("list_multipart_uploads").paginate(
            Bucket=self._where["Bucket"], Prefix=self._where["Key"]
        )
        yield from (found["UploadId"] for found in _listed(pages, "Uploads") if found["Key"] == self._where["Key"])

    def _is_same(self, part: Part, found: Mapping[str, Any]) -> bool:
        """Where the bucket is encrypted with a key of KMS a part's tag is not its MD5, and the checksum says it."""
        if found["Size"] != part.size:
            return False
        content = piece(self._file, part.start, part.size)
        checksum = _checksum(found).get("ChecksumCRC32")
        if checksum:
            return bool(checksum == base64.b64encode(zlib.crc32(content).to_bytes(4, "big")).decode())
        digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
        return bool(found["ETag"].strip('"') == digest)


def piece(file: Path, start: int, size: int) -> bytes:
    """That part of a file. Raises MissingError."""
    try:
        with file.open("rb") as opened:
            opened.seek(start)
            return opened.read(size)
    except OSError as error:
        raise MissingError(f"cannot read {file}: {error.strerror or error}", hint="it is to be sent") from error


def _listed(pages: Any, name: str) -> Iterator[Mapping[str, Any]]:
    """What pages hold. Who may upload may not always list uploads, and one may end while it is looked at: then there is
    nothing to go on with."""
    from botocore.exceptions import ClientError

    try:
        for page in pages:
            yield from page.get(name, ())
    except ClientError as error:
        if code_of(error) not in ("AccessDenied", "NoSuchUpload"):
            raise


def _checksum(found: Mapping[str, Any]) -> dict[str, str]:
    return {"ChecksumCRC32": found["ChecksumCRC32"]} if found.get("ChecksumCRC32") else {}
