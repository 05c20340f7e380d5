"""Two folders kept alike: the object server's and the one that nodes see. See ``storage.py`` for why."""

from __future__ import annotations

import base64
import contextlib
import errno
import hashlib
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

_ATTRIBUTE, _BESIDE = "user.metadata", ".metadata"
_OPEN_SECONDS = 0.3
"""A file that was written this recently may be written to still."""
_RARELY_SECONDS = 0.2
_BLOCK = 1 << 20

Key = tuple[str, str]
"""Bucket and name."""
Call = Callable[[str, str], None]
CallWithFile = Callable[[str, str, Path], None]


class _Seen(NamedTuple):
    """What tells one content of a file from another."""

    inode: int
    size: int
    modified: int
    """Nanoseconds since the epoch."""


class Mirror:
    """Three-way: what was there at the last look says on which side something changed."""

    def __init__(self, objects: Path, mounted: Path, passing: Path, upload: CallWithFile, delete: Call) -> None:
        """``passing``: a folder on the same disk, for files on their way. ``upload`` and ``delete`` ask the server."""
        self._objects, self._mounted, self._passing = objects, mounted, passing
        self._upload, self._delete = upload, delete
        passing.mkdir()
        self._beside = _attributes_lie_beside(objects)
        self._known: dict[Key, tuple[_Seen, _Seen]] = {}
        self._lock = threading.Lock()
        self._last = 0.0

    def sync(self, *, all_of_it: bool) -> None:
        """Bring over what changed on either side."""
        with self._lock:
            if not all_of_it and time.monotonic() < self._last + _RARELY_SECONDS:
                return
            mounted, objects = dict(_files(self._mounted)), dict(_files(self._objects))
            changed = [
                key
                for key in sorted(mounted.keys() | objects.keys() | self._known.keys())
                if (mounted.get(key), objects.get(key)) != self._known.get(key)
            ]
            closed = float("inf") if all_of_it else time.time_ns() - _OPEN_SECONDS * 1e9
            for key in sorted(changed, key=lambda key: key not in self._known):  # what goes makes room for what comes
                here = mounted.get(key)
                if here is None or here.modified < closed:
                    with contextlib.suppress(OSError):  # a node may be faster than we are; the next look sees it
                        self._settle(key, here, objects.get(key))
            self._last = time.monotonic()

    def _settle(self, key: Key, here: _Seen | None, there: _Seen | None) -> None:
        """A node's change wins over a client's of the same moment."""
        known_here, known_there = self._known.get(key, (None, None))
        mounted, stored = self._mounted.joinpath(*key), self._objects.joinpath(*key)
        if here is not None and here != known_here:
            self._known[key] = self._push(key, mounted, stored, here)
        elif there is not None and there != known_there:
            if self._is_object(stored):
                self._known[key] = self._take(stored), there
                self._put(mounted)
        else:
            self._known.pop(key)
            if here is None and there is not None:
                self._delete(*key)
            elif there is None and here is not None:
                mounted.unlink()

    def _push(self, key: Key, mounted: Path, stored: Path, here: _Seen) -> tuple[_Seen, _Seen]:
        """A node's file becomes an object. Its attribute first: the server must never see it without."""
        taken = self._take(mounted)
        try:
            os.setxattr(self._between, _ATTRIBUTE, json.dumps(_described(self._between)).encode())
        except (AttributeError, OSError):
            self._upload(*key, mounted)
            return here, _seen(stored) or here
        self._put(stored)
        return taken, taken

    @property
    def _between(self) -> Path:
        return self._passing / "file"

    def _take(self, source: Path) -> _Seen:
        """Take hold of a file's present content, whatever comes to its place meanwhile."""
        self._between.unlink(missing_ok=True)
        try:
            os.link(source, self._between)
        except OSError:
            shutil.copy2(source, self._between)
        stat = self._between.stat()
        return _Seen(stat.st_ino, stat.st_size, stat.st_mtime_ns)

    def _put(self, target: Path) -> None:
        """Put it there, in one step."""
        target.parent.mkdir(parents=True, exist_ok=True)
        self._between.replace(target)

    def _is_object(self, stored: Path) -> bool:
        """The server's own files lie beside its objects, some for a moment, some for good."""
        if self._beside:
            return stored.suffix != _BESIDE and stored.with_name(stored.name + _BESIDE).exists()
        try:
            os.getxattr(stored, _ATTRIBUTE)
        except AttributeError:  # Python reads attributes on Linux alone
            return True
        except OSError:
            return False
        return True


def _attributes_lie_beside(objects: Path) -> bool:
    """On disks without extended attributes the server has files of its own for them (read in 1.54.0)."""
    try:
        os.getxattr(objects, _ATTRIBUTE)
    except AttributeError:
        return False
    except OSError as error:
        return error.errno != errno.ENODATA
    return False


def _files(root: Path) -> Iterator[tuple[Key, _Seen]]:
    """All files below the folders of ``root`` by bucket and name; links and the like are none."""
    pending = [(bucket, bucket.name, "") for bucket in _entries(root) if bucket.is_dir(follow_symlinks=False)]
    while pending:
        folder, bucket, prefix = pending.pop()
        for entry in _entries(folder):
            name = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                pending.append((entry, bucket, f"{name}/"))
            elif entry.is_file(follow_symlinks=False) and _is_text(name) and (seen := _seen(entry)):
                yield (bucket, name), seen


def _entries(folder: os.PathLike[str]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:  # gone already
        return []


def _seen(file: os.PathLike[str]) -> _Seen | None:
    try:
        stat = os.lstat(file)
    except OSError:
        return None
    return _Seen(stat.st_ino, stat.st_size, stat.st_mtime_ns)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # the name of an object is Unicode, that of a file need not be
        return False
    return True


def _described(file: Path) -> dict[str, object]:
    """What the server keeps of an object beside its content, by the names of its ObjectAttrs (read in 1.54.0)."""
    import google_crc32c

    checksum: Any = google_crc32c.Checksum
    md5, crc = hashlib.md5(usedforsecurity=False), checksum()
    with file.open("rb") as content:
        while block := content.read(_BLOCK):
            md5.update(block)
            crc.update(block)
    now = datetime.now(timezone.utc)
    stamp = f"{now:%Y-%m-%dT%H:%M:%S.%f}Z"
    told = base64.b64encode(md5.digest()).decode()
    return {
        "ContentType": "application/octet-stream",
        "StorageClass": "STANDARD",
        "Crc32c": base64.b64encode(crc.digest()).decode(),
        "Md5Hash": told,
        "Etag": told,
        "Created": stamp,
        "Updated": stamp,
        "Generation": int(now.timestamp() * 1_000_000),
    }
