"""Files that come from a store, by names that anybody may have given them: whole or not at all, and inside a folder."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from cloudtrain.errors import SpecError
from cloudtrain.spec.problems import shown

_OF_THE_NAME = frozenset({errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EINVAL, errno.EILSEQ})


def below(folder: Path, path: str) -> Path:
    """``path`` below ``folder``. Raises SpecError for one that is none, or leads out of it."""
    parts = PurePosixPath(path).parts
    odd = not parts or path.startswith("/") or ".." in parts or "\0" in path
    if odd or (os.name == "nt" and any(letter in path for letter in '\\:*?"<>|')):
        raise SpecError(f"a file of the run is called {shown(path)}, which is no path below {folder}")
    return folder.joinpath(*parts)


@contextmanager
def fitting(folder: Path, path: str) -> Iterator[None]:
    """Around what makes a file or a folder of that name: stores take names that no disk takes, and one that is a file
    beside others that are below it. Raises SpecError for these, and OSError for what no other name would change."""
    try:
        yield
    except OSError as error:
        if error.errno not in _OF_THE_NAME or (folder.exists() and not folder.is_dir()):
            raise
        why = f"a file of the run is called {shown(path)}, which cannot lie below {folder}: {error.strerror}"
        raise SpecError(why) from error


@contextmanager
def landing(folder: Path, path: str) -> Iterator[IO[bytes]]:
    """A file to write to, which gets its name when all has gone well and is gone otherwise. Raises as ``below`` and
    ``fitting``, and OSError."""
    target = below(folder, path)
    with fitting(folder, path):
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f".cloudtrain-{secrets.token_hex(8)}")
        file = unfinished.open("xb")
    try:
        with file:
            yield file
        with fitting(folder, path):
            unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
