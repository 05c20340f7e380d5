"""What code ships with a job: which files of the code folder, one digest of them, an archive or a copy.

bundle = scan(folder)            # decide (ignore.py, walk.py), read (reading.py), remember (cache.py)
bundle.digest, bundle.files      # model.py: the same content gives the same digest on every machine
stage(bundle, target)            # archive.py: the files in a folder, for a run here
write_archive(bundle, target)    # archive.py: a .tar.gz, for a cloud
explain(folder, "data/x.bin")    # why it does not ship
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cloudtrain.bundle.cache import DigestCache, stamp
from cloudtrain.bundle.ignore import NOTHING, Reason, Rules, why
from cloudtrain.bundle.model import DIGEST_FORMAT, Bundle, ShippedFile
from cloudtrain.bundle.names import printable
from cloudtrain.bundle.reading import Changed, is_executable, read
from cloudtrain.bundle.walk import Found, Limits, bytes_text, walk
from cloudtrain.errors import MissingError, SpecError

if TYPE_CHECKING:
    from cloudtrain.bundle.archive import extract, stage, write_archive

__all__ = [
    "DIGEST_FORMAT",
    "Bundle",
    "Limits",
    "Reason",
    "ShippedFile",
    "bytes_text",
    "explain",
    "extract",
    "printable",
    "scan",
    "stage",
    "write_archive",
]

_TRIES = 3


def __getattr__(name: str) -> object:
    """Archives are loaded by those who make one: tarfile, gzip and what they need cost more than all else here."""
    if name in ("extract", "stage", "write_archive"):
        from cloudtrain.bundle import archive

        return getattr(archive, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def scan(
    folder: Path,
    *,
    limits: Limits | None = None,
    clock: Callable[[], int] = time.time_ns,
    above: bool = True,
    no_code: Mapping[str, str] = NOTHING,
) -> Bundle:
    """What ships from a code folder. Links to files and folders inside it are followed and ship as what they lead to.

    Raises SpecError if the folder is not there, is over the ``limits``, or holds what cannot ship and is not ignored: a
    link that leaves it, loops or leads nowhere, a socket, pipe or device, a name that is not UTF-8 or has a control
    character or a backslash; or if a file changes each time it is read. Raises MissingError for what may not be read.
    Names that differ only in case or in Unicode normalisation are different names and ship as they are.
    ``clock`` gives the time in ns since the epoch; it decides which files cache.py may remember. ``above`` False: for a
    copy that was made of a bundle, which ignore files of folders above it have nothing to do with. ``no_code``: paths
    from the code folder that are left out unless an ignore file says otherwise -> what they are.
    """
    root = _real(folder)
    cache = DigestCache.load(root)
    changed = ""
    for _ in range(_TRIES):
        try:
            bundle = _read_all(root, walk(root, limits or Limits(), above=above, no_code=no_code), cache, clock)
        except Changed as error:
            changed = error.path
            continue
        cache.save()
        return bundle
    raise SpecError(
        f"{changed} in {root} changed each time it was read",
        hint="Stop what writes to it, or leave it out: add it to .cloudtrainignore.",
    )


def explain(folder: Path, path: str | Path, *, no_code: Mapping[str, str] = NOTHING) -> Reason | None:
    """Why ``path`` (relative to the code folder, or absolute) does not ship; None if no rule keeps it from shipping.

    It need not exist; a ``/`` at the end says that it is meant as a folder. ``no_code`` as for ``scan``. Raises like
    that for the folder itself.
    """
    root = _real(folder)
    text = os.fspath(path)
    inside = os.path.normpath(os.path.relpath(text, root) if Path(text).is_absolute() else text).replace(os.sep, "/")
    if inside == ".":
        return None
    if inside.split("/")[0] == ".." or Path(inside).is_absolute():
        return Reason(text, "lies outside the code folder, which is all that ships")
    try:
        return _explain(root, inside, text.endswith(("/", os.sep)), no_code)
    except OSError as error:
        raise MissingError(f"cannot read {error.filename}: {error.strerror}") from error


def _real(folder: Path) -> Path:
    try:
        root = folder.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise SpecError(f"the code folder {folder} is not there", hint="See `code:` in the job file.") from error
    if not root.is_dir():
        raise SpecError(f"the code folder {folder} is not a folder", hint="See `code:` in the job file.")
    return root


def _read_all(root: Path, found: list[Found], cache: DigestCache, clock: Callable[[], int]) -> Bundle:
    files: list[ShippedFile] = []
    reread = 0
    for file in found:
        known = cache.digest(file.source, stamp(file.status))
        if known is None:
            began = clock()
            content = read(file.path, file.source)
            cache.remember(file.source, content.stamp, content.sha256, began)
            files.append(ShippedFile(file.path, content.size, content.executable, content.sha256, file.source))
            reread += 1
        else:
            size, executable = file.status.st_size, is_executable(file.status)
            files.append(ShippedFile(file.path, size, executable, known, file.source))
    return Bundle(root, tuple(files), reread)


def _explain(root: Path, inside: str, as_folder: bool, no_code: Mapping[str, str]) -> Reason | None:
    rules, done = Rules.of(root, no_code=no_code), ""
    parts = inside.split("/")
    for position, part in enumerate(parts, 1):
        path, source = done + part, f"{root}/{done}{part}"
        last = position == len(parts)
        reason = why(rules, path, source, is_folder=not last or as_folder or Path(source).is_dir())
        if reason is not None:
            return reason if last else _with_folder(inside, path, reason)
        done = path + "/"
        rules = rules.enter(source, done)
    return None


def _with_folder(inside: str, folder: str, reason: Reason) -> Reason:
    text = reason.text.replace("left out", f"left out with its folder {printable(folder)}/", 1)
    return Reason(inside, text, reason.file, reason.line, reason.pattern)
