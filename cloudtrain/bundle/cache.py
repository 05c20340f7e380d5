"""What files held when they were last read, so that an unchanged tree is not read again.

A file is taken as unchanged if device, inode, size, mtime and ctime are what they were when it was read. Writing to a
file, or setting its mtime back, changes its ctime, so that holds, with one gap: a write within the same tick of the
file system's clock as the one before. As git does with its index, a file is therefore remembered only if its times lay
``MARGIN_NS`` in the past when it was read. On Windows ctime is the time of creation and would hide edits that keep
size and mtime: there every file is read every time.

One JSON file per code folder below ``home()/cache/bundle``, replaced as a whole, so runs side by side cannot spoil it.
A cache that is missing, damaged or cannot be written costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from cloudtrain.errors import CloudtrainError
from cloudtrain.home import home, home_folder

MARGIN_NS = 2_000_000_000  # FAT keeps times to 2 s, the coarsest there is
_FORMAT = 1

Stamp = tuple[int, int, int, int, int]


def stamp(status: os.stat_result) -> Stamp:
    """What changes when a file does."""
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)


class DigestCache:
    """Content digests of one code folder, by source path."""

    def __init__(self, folder: Path, known: dict[str, tuple[Stamp, str]]) -> None:
        self._folder = folder
        self._known = known
        self._fresh: dict[str, tuple[Stamp, str]] = {}

    @classmethod
    def load(cls, folder: Path) -> DigestCache:
        """The cache of a code folder (a real path); an empty one if there is none that makes sense."""
        try:
            saved = json.loads(_file(home() / "cache" / "bundle", folder).read_bytes())
            if saved["format"] == _FORMAT and saved["folder"] == str(folder) and sys.platform != "win32":
                return cls(folder, {path: _entry(entry) for path, entry in saved["files"].items()})
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RuntimeError, RecursionError):
            pass
        return cls(folder, {})

    def digest(self, source: str, now: Stamp) -> str | None:
        """The sha256 of a file that is surely what it was, else None."""
        known = self._known.get(source)
        if known is None or known[0] != now:
            return None
        self._fresh[source] = known
        return known[1]

    def remember(self, source: str, at: Stamp, digest: str, read_ns: int) -> None:
        """A file was read, beginning at ``read_ns`` (ns since the epoch)."""
        if max(at[1], at[2]) + MARGIN_NS < read_ns:
            self._fresh[source] = (at, digest)

    def save(self) -> None:
        """Keeps what was used or read since ``load``; silently does nothing where that is not possible."""
        if self._fresh == self._known or sys.platform == "win32":
            return
        content = {"format": _FORMAT, "folder": str(self._folder), "files": self._fresh}
        try:
            _replace(_file(home_folder("cache", "bundle"), self._folder), json.dumps(content).encode())
        except (OSError, CloudtrainError, ValueError, RuntimeError):
            pass


def _file(where: Path, folder: Path) -> Path:
    return where / (hashlib.sha256(os.fsencode(folder)).hexdigest()[:32] + ".json")


def _entry(saved: Any) -> tuple[Stamp, str]:
    (size, mtime, ctime, inode, device), digest = saved
    if not (isinstance(digest, str) and len(digest) == 64):
        raise ValueError("not a digest")
    return (size, mtime, ctime, inode, device), digest


def _replace(path: Path, content: bytes) -> None:
    import tempfile  # not loaded where all files are known

    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.stem)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink()
        raise
