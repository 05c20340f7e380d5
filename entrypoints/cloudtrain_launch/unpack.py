"""The user's code out of its archive, which our own bundler wrote: regular files with plain relative paths.

Anything else is refused rather than unpacked: a link or a path that leads out of the folder could overwrite what the
container holds. ``tarfile`` has a filter for that only from Python 3.12, and in later fixes of the older ones.
"""

from __future__ import annotations

import os
import posixpath
import shutil
import tarfile
import zlib

from cloudtrain_launch.errors import LaunchError


def unpack(archive: str, folder: str) -> None:
    """Unpack ``archive`` (.tar.gz) into ``folder``, which is made. Raises LaunchError if it is unsafe or damaged."""
    try:
        os.makedirs(folder)
        with tarfile.open(archive, "r:gz") as tar:
            for member in tar:
                _unpack(tar, member, archive, folder)
            while tar.fileobj and tar.fileobj.read(1 << 20):  # to its very end, where the checksum is
                pass
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise LaunchError(f"CLOUDTRAIN_CODE: {archive} is damaged or no archive: {error}") from error
    except OSError as error:
        raise LaunchError(f"CLOUDTRAIN_CODE: cannot unpack {archive}: {error}") from error


def _unpack(tar: tarfile.TarFile, member: tarfile.TarInfo, archive: str, folder: str) -> None:
    content = tar.extractfile(member) if member.isreg() and not member.issparse() else None
    if content is None:
        raise LaunchError(f"CLOUDTRAIN_CODE: {archive} holds {member.name!r}, which is not a regular file")
    name = member.name
    if posixpath.isabs(name) or ".." in name.split("/") or posixpath.normpath(name) != name or "\\" in name:
        raise LaunchError(f"CLOUDTRAIN_CODE: {archive} holds {name!r}, which is not a plain relative path")
    place = os.path.join(folder, name)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    mode = 0o755 if member.mode & 0o100 else 0o644
    # Nothing was there before, so a name that exists is in the archive twice.
    with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        shutil.copyfileobj(content, file, 1 << 20)
