"""The last resort: a fault of ours becomes a file to send us and exit code 5, never a traceback on the screen."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import tempfile
import traceback
from pathlib import Path

import click

from cloudtrain.errors import CloudtrainError, MissingError

_OF_THE_MACHINE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Any file may meet these, standard output and temporary files, too."""


def last_words(error: Exception) -> int:
    """Call inside the ``except`` block of an error that nobody has expected; says what there is to say, and returns the
    exit code."""
    if isinstance(error, FileNotFoundError) and not _is_somewhere():
        with contextlib.suppress(OSError):
            click.echo("cloudtrain: the current folder is not there any more", err=True)
        return MissingError.exit_code
    if not isinstance(error, OSError) or error.errno not in _OF_THE_MACHINE:
        return report_fault()
    where = f"{error.filename}: " if error.filename else ""
    with contextlib.suppress(OSError):
        click.echo(f"cloudtrain: {where}{error.strerror}", err=True)
        click.echo(
            "this machine gives no more: look at the disks of standard output, of CLOUDTRAIN_HOME and of temporary "
            f"files ({_temporary()}), and at `ulimit -a`; `cloudtrain runs` lists what has been begun",
            err=True,
        )
    return MissingError.exit_code


def _is_somewhere() -> bool:
    try:
        return bool(os.getcwd())  # noqa: PTH109 - Path.cwd would do the same
    except OSError:
        return False


def _temporary() -> str:
    try:
        return tempfile.gettempdir()
    except OSError:
        return "no folder for them can be written"


def report_fault() -> int:
    """Call inside an ``except`` block. Writes the traceback to a file, names it, and returns the exit code (5)."""
    text = f"cloudtrain fault\ncommand: {sys.argv!r}\npython: {sys.version}\n\n{traceback.format_exc()}"
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="cloudtrain-fault-", suffix=".txt", delete=False, encoding="utf-8"
        ) as file:
            file.write(text)
        where = f"the details are in {Path(file.name)}; please report them"
    except OSError:
        where = text
    click.echo(f"cloudtrain: this is a fault of cloudtrain, not of your job ({sys.exc_info()[1]!r}); {where}", err=True)
    return CloudtrainError.exit_code
