"""Unpacks an archive that comes from outside: files, folders and links inside it, nothing outside its folder.

Archives are made of what a job has left, so their names may be anything. Every file is written under a name of its own
first (``landing``), and links are made when all files are there: nothing is ever written through one. So this does not
rest on tarfile's filters, of which not every Python that we run on has the same.
"""

from __future__ import annotations

import gzip
import os
import posixpath
import shutil
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

from cloudtrain.errors import SpecError, UnreachableError
from cloudtrain.providers.landing import below, fitting, landing
from cloudtrain.spec.problems import shown

_PIECE = 1 << 20
_FEW = 5

Renamed = Callable[[str], "str | None"]
"""A member's name -> its path below the folder, or None for one that is not wanted."""


def unpack(file: IO[bytes], folder: Path, renamed: Renamed, source: str) -> None:
    """Write the wanted members below ``folder``.

    Raises UnreachableError for what is no archive, or not a whole one; SpecError, when all else has been written, for
    members that would leave the folder or are no files.
    """
    try:
        with tarfile.open(fileobj=file, mode="r:*") as tar:
            refused = _Unpacking(tar, folder, renamed).run()
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnreachableError(f"{source} is no whole archive: {error}", hint="download it again") from error
    if refused:
        names = ", ".join(shown(name) for name in refused[:_FEW])
        more = f" and {len(refused) - _FEW} more" if len(refused) > _FEW else ""
        raise SpecError(
            f"{source} holds what does not belong below {folder}: {names}{more}", hint="all else has been unpacked"
        )


class _Unpacking:
    def __init__(self, tar: tarfile.TarFile, folder: Path, renamed: Renamed) -> None:
        self._tar = tar
        self._folder = folder
        self._renamed = renamed
        self._refused: list[str] = []

    def run(self) -> list[str]:
        """Returns the names of the members that were left out."""
        links = []
        for member in self._tar:
            if member.issym() or member.islnk():
                links.append(member)
            else:
                self._one(member, self._plain)
        for member in links:
            self._one(member, self._link)
        return self._refused

    def _one(self, member: tarfile.TarInfo, write: Callable[[tarfile.TarInfo, str], None]) -> None:
        name = self._renamed(posixpath.normpath(member.name))
        if name in (None, "."):
            return
        try:
            write(member, name)
        except SpecError:
            self._refused.append(member.name)

    def _plain(self, member: tarfile.TarInfo, name: str) -> None:
        if member.isdir():
            with fitting(self._folder, name):
                below(self._folder, name).mkdir(parents=True, exist_ok=True)
        elif member.isfile():
            self._file(member, name)
        else:
            raise SpecError(f"{name} is a device")

    def _file(self, member: tarfile.TarInfo, name: str) -> None:
        content = self._tar.extractfile(member)
        if content is None:
            raise SpecError(f"{name} is no file")
        with content, landing(self._folder, name) as target:
            if member.mode & 0o100:
                _make_executable(Path(target.name))
            shutil.copyfileobj(content, target, _PIECE)

    def _link(self, member: tarfile.TarInfo, name: str) -> None:
        """A link to a file becomes a copy; one to anything else below the folder stays a link."""
        if self._leads_to_file(member):
            self._file(member, name)
            return
        if member.islnk() or member.linkname.startswith("/"):
            raise SpecError(f"{name} leads nowhere")
        leads = posixpath.normpath(posixpath.join(posixpath.dirname(name), member.linkname))
        target, link = below(self._folder, leads), below(self._folder, name)
        steps = [target, *target.parents]
        if any(step.is_symlink() for step in steps[: steps.index(self._folder)]):
            raise SpecError(f"{name} leads through another link")
        with fitting(self._folder, name):
            link.parent.mkdir(parents=True, exist_ok=True)
            if link.is_symlink():
                link.unlink()
            link.symlink_to(os.path.relpath(target, link.parent))

    def _leads_to_file(self, member: tarfile.TarInfo) -> bool:
        try:
            return self._tar.extractfile(member) is not None
        except (KeyError, RecursionError):
            return False


def _make_executable(file: Path) -> None:
    """For whoever may read it."""
    mode = file.stat().st_mode
    file.chmod(mode | (mode & 0o444) >> 2)
