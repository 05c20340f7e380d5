"""Checkpoints: a folder on every node that is kept in step with one place in S3.

What lies there is copied to every node when it starts. From then on what a node writes or removes is written or removed
there, too; what others write there is not fetched. All nodes share the place, and the last one to write a name wins.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cloudtrain.emulator.sagemaker.uris import Place, objects

_EVERY_SECONDS = 0.5


class _Seen(NamedTuple):
    """How a file was when it was last looked at."""

    modified: int
    size: int
    number: int


class Checkpoints:
    """The folders of one start's nodes."""

    def __init__(self, s3: Any, uri: str, folders: Sequence[Path]) -> None:
        """``folders``: one for each node, or none where the job keeps no checkpoints."""
        self._s3 = s3
        self._place = Place.of(uri).folder
        self._folders = folders
        self._places: list[Path] = []
        """Where the folders really are."""
        self._seen: list[dict[str, _Seen]] = [{} for _ in folders]
        self._next = 0.0

    def restore(self) -> None:
        """Copy what is in S3 to every node. Raises botocore's ClientError without the bucket, OSError."""
        if not self._folders:
            return
        for folder in self._folders:
            folder.mkdir(parents=True, exist_ok=True)
        self._places = [folder.resolve() for folder in self._folders]
        for item in objects(self._s3, self._place):
            name = item.key[len(self._place.prefix) :]
            if not name or name.endswith("/") or {"..", ".", ""} & set(name.split("/")):
                continue
            first, *others = (folder / name for folder in self._folders)
            first.parent.mkdir(parents=True, exist_ok=True)
            with first.open("wb") as file:
                shutil.copyfileobj(self._s3.get_object(Bucket=self._place.bucket, Key=item.key)["Body"], file)
            for other in others:
                other.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(first, other)
        self._seen = [dict(_files(folder)) for folder in self._folders]

    def sync(self, *, now: bool = False) -> None:
        """Take changes to S3, if it is time to look again, or ``now``. A file that is gone meanwhile is left out, and a
        folder in whose place the script has put a link, which may lead anywhere on this machine."""
        if not now and time.monotonic() < self._next:
            return
        for number, folder in enumerate(self._folders):
            if folder.resolve() != self._places[number]:
                continue
            found = dict(_files(folder))
            for name, seen in found.items():
                if self._seen[number].get(name) != seen:
                    self._put(folder / name, name)
            for name in self._seen[number].keys() - found.keys():
                self._s3.delete_object(Bucket=self._place.bucket, Key=self._place.prefix + name)
            self._seen[number] = found
        self._next = time.monotonic() + _EVERY_SECONDS

    def _put(self, path: Path, name: str) -> None:
        try:
            with path.open("rb") as file:
                self._s3.upload_fileobj(file, self._place.bucket, self._place.prefix + name)
        except OSError:
            pass  # removed since; the next look finds that


def _files(folder: Path) -> Iterator[tuple[str, _Seen]]:
    """All regular files below ``folder`` whose names can be keys."""
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            try:
                key = path.relative_to(folder).as_posix()
                key.encode()
                found = path.stat()
            except (OSError, UnicodeError):
                continue
            if path.is_file():
                yield key, _Seen(found.st_mtime_ns, found.st_size, found.st_ino)
