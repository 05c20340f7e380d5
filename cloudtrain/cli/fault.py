"""The last resort: a fault of ours becomes a file to send us and exit code 5, never a traceback on the screen."""

from __future__ import annotations

import sys
import tempfile
import traceback
from pathlib import Path

import click

from cloudtrain.errors import CloudtrainError


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
