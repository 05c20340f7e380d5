"""What of a folder can be blobs: ordinary files, at paths without a link.

A job may write links, here. In Azure it cannot, where the folder is a mount of a container, and what it links to lies
on the node: it is none of what the job has left. So links are not followed, whatever they lead to; a link to a file of
this machine would bring that into the storage account.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple


class Contents(NamedTuple):
    """What lies in a folder, by the paths seen from it."""

    files: dict[str, os.stat_result]
    others: dict[str, str]
    """Links, pipes and the like, and in a few words what each is. ``""`` is the folder itself."""


def contents(folder: Path) -> Contents:
    """All that lies below a folder; what goes away meanwhile is not there."""
    if folder.is_symlink():
        return Contents({}, {"": _kind(folder.lstat().st_mode)})
    files, others = {}, {}
    for base, folders, names in os.walk(folder):
        for path in (Path(base, name) for name in (*folders, *names)):
            try:
                found = path.lstat()
            except OSError:
                continue
            name = path.relative_to(folder).as_posix()
            if stat.S_ISREG(found.st_mode):
                files[name] = found
            elif not stat.S_ISDIR(found.st_mode):
                others[name] = _kind(found.st_mode)
    return Contents(files, others)


def unlike_blobs(folder: str, names: list[str]) -> list[str]:
    """Those of a folder's entries that ``contents`` has among the others, as ``shutil.copytree`` wants to know them."""
    modes = ((name, Path(folder, name).lstat().st_mode) for name in names)
    return [name for name, mode in modes if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))]


def _kind(mode: int) -> str:
    return "a symbolic link" if stat.S_ISLNK(mode) else "no ordinary file"
