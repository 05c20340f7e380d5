"""Channels that a job names here alone, for a cloud: their files travel, to a folder named by their content.

    data: {train: {uri: {local: data}}}   ->   s3://BUCKET/PREFIX/data/<digest>/

So a job that trains here is submitted as it is, equal files are sent once, and other files are another request.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cloudtrain.bundle.cache import DigestCache, stamp
from cloudtrain.errors import MissingError
from cloudtrain.providers.base import Shipped
from cloudtrain.providers.local.links import key_of, objects_of
from cloudtrain.providers.places import lying_here, store_of

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.settings import Settings

_DIGITS = 32
_PIECE = 1 << 20


class Placed(NamedTuple):
    """A job whose channels all have a place with the provider, as far as they lie here."""

    job: Job
    ships: tuple[Shipped, ...]
    notes: tuple[str, ...]


def placed(job: Job, settings: Settings) -> Placed:
    """Give every channel that has files here, and no place with the provider, one in the provider's store.

    Reads the files, unless they are known from before. Raises MissingError for files that cannot be read.
    """
    ships, notes, uris = [], [], {}
    for name, uri in lying_here(job, settings.provider).items():
        folder = (job.folder / uri.removeprefix("file://")).resolve()
        if not folder.exists():
            continue
        content = _digest(folder)
        to = f"{store_of(settings)}/data/{content.digest}/"
        ships.append(Shipped("data", to, str(folder)))
        files = "1 file" if content.files == 1 else f"{content.files:,} files"
        notes.append(f"data.{name}: {files}, {_size(content.size)}, of {folder} go to {to}")
        uris[name] = {"uri": {settings.provider: to}}
    return Placed(job.with_(data=uris) if uris else job, tuple(ships), tuple(notes))


def objects(folder: Path) -> Iterator[tuple[str, Path]]:
    """Key below the channel's folder, and the file, in the order of the keys. Raises MissingError."""
    for file in objects_of(folder):
        yield key_of(file, folder), file


class _Content(NamedTuple):
    digest: str
    files: int
    size: int


def _digest(folder: Path) -> _Content:
    """Of names and contents, whatever their times; a file that has not changed since it was read is not read again."""
    cache, size, lines = DigestCache.load(folder), 0, []
    try:
        for key, file in objects(folder):
            status = file.stat()
            size += status.st_size
            now = stamp(status)
            known = cache.digest(str(file), now)
            if known is None:
                began = time.time_ns()
                known = _sha256(file)
                cache.remember(str(file), now, known, began)
            lines.append(f"{known} {key}\n")
    except OSError as error:
        raise MissingError(f"cannot read {error.filename or folder}: {error.strerror or error}") from error
    cache.save()
    whole = hashlib.sha256(b"cloudtrain-data 1\n" + "".join(lines).encode("utf-8", "surrogateescape"))
    return _Content(whole.hexdigest()[:_DIGITS], len(lines), size)


def _sha256(file: Path) -> str:
    found = hashlib.sha256()
    with file.open("rb") as stream:
        while piece := stream.read(_PIECE):
            found.update(piece)
    return found.hexdigest()


def _size(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
