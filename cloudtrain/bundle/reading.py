"""Reading shipped files so that a change underneath is noticed, never shipped half old and half new."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable
from typing import NamedTuple

from cloudtrain.bundle.cache import Stamp, stamp
from cloudtrain.errors import MissingError

_CHUNK = 1 << 20
# O_NONBLOCK: a pipe put in place of a file must not hang us; O_BINARY exists, and matters, on Windows only.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.ESTALE}


class Changed(Exception):
    """A file vanished or changed while it was read. Never leaves this package."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class Content(NamedTuple):
    """What one reading of a file gave."""

    size: int
    sha256: str
    executable: bool
    stamp: Stamp


class Reader:
    """One file, opened, hashed as it is read and compared with itself at the end. A context manager.

    ``path`` is its name in messages. Every method raises Changed, or MissingError if the file cannot be read.
    """

    def __init__(self, path: str, source: str) -> None:
        self._path = path
        self._handle = _open(path, source)
        self._status = os.fstat(self._handle)
        self._hash = hashlib.sha256()
        self._left = self._status.st_size

    def __enter__(self) -> Reader:
        if not stat.S_ISREG(self._status.st_mode):
            os.close(self._handle)
            raise Changed(self._path)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    @property
    def size(self) -> int:
        """Bytes the file had when it was opened."""
        return self._status.st_size

    def read(self, size: int = _CHUNK) -> bytes:
        """The next bytes, at most ``size``; empty only at the end, where it was when the file was opened."""
        try:
            chunk = os.read(self._handle, min(size, self._left))
        except OSError as error:
            raise _unreadable(self._path, error) from error
        if not chunk and size and self._left:
            raise Changed(self._path)
        self._hash.update(chunk)
        self._left -= len(chunk)
        return chunk

    def finish(self) -> Content:
        """What was read, all of it; nothing about the file has changed since it was opened."""
        before, after = self._status, os.fstat(self._handle)
        if self._left or stamp(before) != stamp(after):
            raise Changed(self._path)
        return Content(before.st_size, self._hash.hexdigest(), is_executable(before), stamp(before))


def read(path: str, source: str, write: Callable[[bytes], object] = len) -> Content:
    """Reads ``source`` once and hands its bytes on to ``write``, whose errors pass through. Raises like Reader."""
    with Reader(path, source) as reader:
        while chunk := reader.read():
            write(chunk)
        return reader.finish()


def is_executable(status: os.stat_result) -> bool:
    """The owner's exec bit. Windows has none: there no file counts as executable."""
    return os.name != "nt" and bool(status.st_mode & stat.S_IXUSR)


def _open(path: str, source: str) -> int:
    try:
        return os.open(source, _READ)
    except OSError as error:
        if error.errno in _GONE:
            raise Changed(path) from error
        raise _unreadable(path, error) from error


def _unreadable(path: str, error: OSError) -> MissingError:
    return MissingError(
        f"cannot read {path} in the code folder: {error.strerror}",
        hint="Make it readable, or leave it out: add its path to .cloudtrainignore.",
    )
