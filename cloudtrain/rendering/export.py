"""The way out: a folder from which the vendor's own command line submits the same job, without cloudtrain.

    DIR/  the request    code/  what every node runs    spec/  what launch.py is to run    submit.sh  the commands

The folder appears complete or not at all: it is made beside its place and changes places with what is there; into one
that is empty the parts are moved, submit.sh last. What replaces an earlier export replaces nothing else: the script
lists what was written with it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cloudtrain.errors import MissingError, SpecError
from cloudtrain.providers import registry
from cloudtrain.providers.shipping import write_code, write_spec

if TYPE_CHECKING:
    from cloudtrain.bundle import Bundle
    from cloudtrain.providers.base import Export, Request

SCRIPT = "submit.sh"
_LISTED = "# cloudtrain wrote, and replaces: "
_TEMPORARY = ".cloudtrain-"
_NEVER_SHIPS = ".cloudtrain"
_TRIES = 100
_FROM_HERE, _EXCHANGE = -100, 2
"""AT_FDCWD and RENAME_EXCHANGE of Linux."""
_IN_USE = (errno.EBUSY, errno.EINVAL, errno.EXDEV)
"""Of renaming the current folder as ``.``, or a place where something is mounted."""

# Not `cd "$(dirname "$0")"`: that searches CDPATH, and takes a leading hyphen or a last line end for something else.
_HEAD = ("#!/bin/sh", "{listed}", "set -eu", 'CDPATH= cd -- "${{0%"${{0##*/}}"}}."')


def export_to(folder: Path, request: Request, bundle: Bundle) -> Export:
    """Fill ``folder``, replacing what an earlier export left there. Returns what submits the job.

    Raises SpecError for a folder that holds something else or would ship with the code, MissingError if it cannot be
    written.
    """
    export = registry.export(request)
    try:
        _refuse_taken(folder)
        free = _is_free(folder)
        beside = _beside(folder, bundle, free)
        beside.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=_TEMPORARY, dir=beside) as temporary:
            made = Path(temporary, "new")
            _fill(made, request, bundle, export)
            if free:
                _move_into(made, folder)
            else:
                _put_in_place(made, folder, Path(temporary))
    except OSError as error:
        raise _cannot_write(folder, error) from error
    return export


def _beside(folder: Path, bundle: Bundle, free: bool) -> Path:
    """Where the folder is made. Raises SpecError if it would ship with the code.

    Beside its place, so that it can be renamed; inside the code folder where nothing ships, so that neither a run at
    the same time nor one after a crash finds a half of it among the code.
    """
    from cloudtrain.bundle import explain

    place = _real(folder.parent) / folder.name
    inside = place.is_relative_to(bundle.folder)
    if inside and explain(bundle.folder, f"{place}/") is None:
        raise SpecError(
            f"{folder} lies in the code folder and would ship with the next run",
            hint=f"Write it elsewhere, or add {folder.name}/ to .cloudtrainignore.",
        )
    if free:
        return folder
    if not inside:
        return folder.parent
    folder.parent.mkdir(parents=True, exist_ok=True)
    return bundle.folder / _NEVER_SHIPS


def _real(folder: Path) -> Path:
    try:
        return folder.resolve()
    except RuntimeError as error:  # a loop of links, until Python 3.13
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from error


def _fill(folder: Path, request: Request, bundle: Bundle, export: Export) -> None:
    folder.mkdir()
    write_code(bundle, folder / "code")
    for ship in request.ships:
        if ship.kind == "spec":
            write_spec(request.spec, folder / ("spec" if "://" in ship.to else ship.to))
    for name, text in export.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    script = folder / SCRIPT
    listed = _LISTED + " ".join(sorted([SCRIPT, *(path.name for path in folder.iterdir())]))
    head = "\n".join(_HEAD).format(listed=listed)
    script.write_text("\n".join([head, *export.commands, ""]), "utf-8")
    script.chmod(0o755)


def _move_into(made: Path, folder: Path) -> None:
    """Code first: a folder replaces nothing, so of two at once one ends here."""
    for part in sorted(made.iterdir(), key=lambda path: (path.name == SCRIPT, path.name != "code")):
        part.rename(folder / part.name)


def _put_in_place(made: Path, folder: Path, temporary: Path) -> None:
    for number in range(_TRIES):
        if _replaced(folder, made, temporary / f"old{number}"):
            return
        _refuse_taken(folder)  # another export was there first
    raise OSError(errno.EAGAIN, "others write to it all the time")


def _replaced(folder: Path, made: Path, old: Path) -> bool:
    if _exchanged(made, folder):
        return True  # what was there goes with the temporary folder
    try:
        with contextlib.suppress(FileNotFoundError):
            folder.rename(old)
        made.rename(folder)
    except BaseException as error:  # Ctrl-C, too: what was moved away would be deleted with the temporary folder
        if old.exists() and not folder.exists():
            old.rename(folder)
        if isinstance(error, OSError) and error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


def _exchanged(made: Path, folder: Path) -> bool:
    """Both change places in one step, which Linux can do on most file systems: no kill finds the place empty."""
    if sys.platform != "linux":
        return False
    import ctypes

    exchange = getattr(ctypes.CDLL(None), "renameat2", None)
    if exchange is None:
        return False
    return bool(exchange(_FROM_HERE, os.fsencode(made), _FROM_HERE, os.fsencode(folder), _EXCHANGE) == 0)


def _refuse_taken(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise SpecError(f"{folder} is no folder", hint="give --out a folder that is not there yet")
    listed = _listed(folder / SCRIPT)
    if others := [name for name in _names(folder) if name not in listed]:
        raise SpecError(
            f"{folder} holds what no earlier export has written: {_few(others)}",
            hint="give --out a folder that is empty or not there yet",
        )


def _is_free(folder: Path) -> bool:
    """Whether it is there and empty."""
    return folder.is_dir() and not _names(folder)


def _names(folder: Path) -> list[str]:
    """What lies in it, but for what exports have there that are being written, or were killed."""
    try:
        return sorted(path.name for path in folder.iterdir() if not path.name.startswith(_TEMPORARY))
    except FileNotFoundError:
        return []


def _listed(script: Path) -> list[str]:
    """What an earlier export says that it has written."""
    try:
        lines = script.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []
    return next((line.removeprefix(_LISTED).split() for line in lines if line.startswith(_LISTED)), [])


def _few(names: list[str]) -> str:
    from cloudtrain.bundle.names import printable

    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(map(printable, names[:3])) + more


def _cannot_write(folder: Path, error: OSError) -> MissingError:
    reason = error.strerror or str(error)
    if error.errno == errno.ENOTEMPTY:
        return MissingError(f"{folder} cannot be written: another export has been written there at the same time")
    if error.errno in _IN_USE:
        hint = "It is the current folder, or something is mounted there: give --out a folder that is not there yet."
        return MissingError(f"{folder} cannot be replaced: {reason}", hint=hint)
    return MissingError(f"{folder} cannot be written: {reason}")
