"""A bundle as an archive or as a folder, written whole or not at all.

The archive is a gzipped tar without anything that differs from machine to machine: files only, in the order of the
bundle, mtime 0, owner 0, no user names, mode 0755 or 0644. The same bundle gives the same bytes under the same zlib;
its digest does not depend on that. Whatever is read is compared to the digest on the way.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import os
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, cast

from cloudtrain.bundle.model import Bundle, ShippedFile, listing_digest
from cloudtrain.bundle.names import printable
from cloudtrain.bundle.reading import Changed, Content, Reader, read
from cloudtrain.bundle.walk import Limits, bytes_text
from cloudtrain.errors import CloudtrainError, MissingError, SpecError

_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_BROKEN = (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error)
_PADDING = 1 << 20  # bytes; tar fills up to 10 KiB
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def write_archive(bundle: Bundle, target: Path) -> None:
    """Writes ``target`` (a .tar.gz), replacing a file that is there; it appears complete or not at all.

    Raises SpecError if a file is no longer what the bundle says, MissingError if the archive cannot be written.
    """
    with (
        _writing(target, bundle.size),
        _temporary_beside(target) as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for file in bundle.files:
            _add(tar, bundle, file)


def stage(bundle: Bundle, target: Path) -> None:
    """Copies the files of a bundle into ``target``, a folder that is empty or not there yet, modes 0755 and 0644.

    Raises SpecError if a file is no longer what the bundle says or ``target`` is not empty, MissingError if it cannot
    be written. After an error what was copied stays behind in ``target``.
    """
    with _writing(target, bundle.size):
        folders = _Folders(target)
        for file in bundle.files:
            _copy(folders, bundle, file)


def extract(archive: Path, target: Path, *, limits: Limits | None = None) -> str:
    """Unpacks an archive into ``target``, a folder that is empty or not there yet; gives the digest of what it held.

    Nothing but regular files with plain relative paths is accepted, so that nothing can land outside. Raises SpecError
    for anything else, for a damaged archive, or one that holds more than ``limits``; MissingError if a file cannot be
    read or written. After an error what was unpacked stays behind in ``target``.
    """
    try:
        with (
            archive.open("rb") as raw,
            _writing(target, 0),
            gzip.GzipFile(fileobj=raw) as zipped,
            tarfile.open(fileobj=zipped, mode="r:") as tar,
        ):
            digest = _unpack(tar, archive, _Folders(target), limits or Limits())
            _read_to_the_end(zipped)
            return digest
    except _BROKEN as error:
        raise SpecError(f"{archive} is damaged or no bundle: {error}") from error
    except OSError as error:
        raise MissingError(f"cannot read {archive}: {error.strerror or error}") from error


def _add(tar: tarfile.TarFile, bundle: Bundle, file: ShippedFile) -> None:
    member = tarfile.TarInfo(file.path)
    member.size, member.mode = file.size, file.mode
    with _expecting(bundle, file), Reader(file.path, file.source) as reader:
        if reader.size != file.size:
            raise Changed(file.path)
        tar.addfile(member, cast("IO[bytes]", reader))
        _compare(file, reader.finish())


def _copy(folders: _Folders, bundle: Bundle, file: ShippedFile) -> None:
    with _expecting(bundle, file), _created(folders, file) as into:
        _compare(file, read(file.path, file.source, into.write))


def _compare(file: ShippedFile, content: Content) -> None:
    if content.sha256 != file.sha256:
        raise Changed(file.path)


@contextlib.contextmanager
def _expecting(bundle: Bundle, file: ShippedFile) -> Iterator[None]:
    try:
        yield
    except Changed as error:
        raise SpecError(
            f"{file.path} in {bundle.folder} changed after the code folder was read",
            hint="Run the command again; if something keeps writing to the file, add it to .cloudtrainignore.",
        ) from error


class _Folders:
    """Makes the folders below an empty ``target`` that paths need, each once."""

    def __init__(self, target: Path) -> None:
        target.mkdir(parents=True, exist_ok=True)
        if any(target.iterdir()):
            raise SpecError(f"{target} is not empty", hint="Name a new or an empty folder.")
        self._target = str(target)
        self._made = {""}

    def place(self, path: str) -> str:
        """Where the file ``path`` goes; its folder exists."""
        missing = []
        parent = path.rpartition("/")[0]
        while parent not in self._made:
            missing.append(parent)
            parent = parent.rpartition("/")[0]
        for folder in reversed(missing):  # not mkdir(parents=True), which fails on very deep trees
            Path(self._target, folder).mkdir(exist_ok=True)
            self._made.add(folder)
        return f"{self._target}/{path}"


@contextlib.contextmanager
def _created(folders: _Folders, file: ShippedFile) -> Iterator[IO[bytes]]:
    """A new file to write. An existing one is an error: two names that differ here may be one name on this disk."""
    place = folders.place(file.path)
    try:
        handle = os.open(place, _WRITE, file.mode)
    except FileExistsError as error:
        raise SpecError(f"{file.path}: another file of the bundle has the same name on this disk: {place}") from error
    with os.fdopen(handle, "wb", buffering=0) as opened:
        if os.name != "nt":
            os.fchmod(handle, file.mode)  # whatever the umask
        yield opened


def _unpack(tar: tarfile.TarFile, archive: Path, folders: _Folders, limits: Limits) -> str:
    files: list[ShippedFile] = []
    size = 0
    for member in tar:
        path = _safe_path(archive, member)
        size += member.size
        if size > limits.size or len(files) >= limits.files:
            raise SpecError(f"{archive} holds more than {limits.files:,} files or {bytes_text(limits.size)}")
        file = ShippedFile(path, member.size, bool(member.mode & 0o100), "", "")
        with _created(folders, file) as into:
            files.append(file._replace(sha256=_pour(tar.extractfile(member), into)))
    return listing_digest(files)


def _read_to_the_end(zipped: gzip.GzipFile) -> None:
    """Past the last file there is nothing but a little padding, and then the checksum, which gzip compares."""
    padding = zipped.read(_PADDING)
    if padding.strip(b"\0") or zipped.read(1):
        raise tarfile.ReadError("it goes on after its last file")


def _pour(content: IO[bytes] | None, into: IO[bytes]) -> str:
    """Writes all of ``content`` and gives its sha256."""
    digest = hashlib.sha256()
    while content is not None and (chunk := content.read(1 << 20)):
        digest.update(chunk)
        into.write(chunk)
    return digest.hexdigest()


def _safe_path(archive: Path, member: tarfile.TarInfo) -> str:
    """The path of a regular file that stays below the folder it is unpacked in, or SpecError."""
    name, path = printable(member.name), PurePosixPath(member.name)
    if not member.isreg() or member.issparse():
        raise SpecError(f"{archive} holds {name}, which is not a regular file")
    unsafe = path.is_absolute() or ".." in path.parts or str(path) != member.name or name == "."
    if unsafe or "\\" in member.name or Path(member.name).drive:
        raise SpecError(f"{archive} holds {name}, which is not a plain relative path")
    return member.name


@contextlib.contextmanager
def _temporary_beside(target: Path) -> Iterator[IO[bytes]]:
    """A file that takes ``target``'s name if the block ends well, and is removed if not."""
    target = target.resolve()
    if target.exists() and not target.is_file():  # /dev/null must not be replaced by an archive
        what = "a folder" if target.is_dir() else "not a regular file"
        raise SpecError(f"{target} is {what}", hint="Name the file to write, such as code.tar.gz.")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        temporary.chmod(0o644)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _writing(target: Path, need: int) -> Iterator[None]:
    """Turns errors of the disk into MissingError that names the place and, if it is full, the need (bytes)."""
    try:
        yield
    except CloudtrainError:
        raise
    except gzip.BadGzipFile:  # an OSError, but not of the disk
        raise
    except OSError as error:
        if error.errno not in _FULL:
            raise MissingError(f"cannot write {target}: {error.strerror or error}") from error
        needs = f"; it needs up to {bytes_text(need)}" if need else ""
        raise MissingError(
            f"no space left for {target}{needs}", hint="Free some space, or choose another disk."
        ) from error
