"""The way out: a folder from which the vendor's own command line submits the same job, without cloudtrain.

    DIR/  the request    code/  what every node runs    spec/  what launch.py is to run    submit.sh  the commands

The folder appears complete or not at all: it is made beside its place and renamed.
"""

from __future__ import annotations

import shutil
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


def export_to(folder: Path, request: Request, bundle: Bundle) -> Export:
    """Fill ``folder``, replacing what an earlier export left there. Returns what submits the job.

    Raises SpecError for a folder that holds something else or would ship with the code, MissingError if it cannot be
    written.
    """
    _refuse_taken(folder)
    _refuse_shipping(folder, bundle)
    export = registry.export(request)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".cloudtrain-", dir=folder.parent) as temporary:
            made = Path(temporary, "new")
            _fill(made, request, bundle, export)
            _put_in_place(made, folder, Path(temporary, "old"))
    except OSError as error:
        raise MissingError(f"{folder} cannot be written: {error.strerror or error}") from error
    return export


def _fill(folder: Path, request: Request, bundle: Bundle, export: Export) -> None:
    folder.mkdir()
    write_code(bundle, folder / "code")
    for ship in request.ships:
        if ship.kind == "spec":
            write_spec(request.spec, folder / ("spec" if "://" in ship.to else ship.to))
    for name, text in export.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    script = folder / SCRIPT
    script.write_text("\n".join(["#!/bin/sh", "set -eu", 'cd "$(dirname "$0")"', *export.commands, ""]), "utf-8")
    script.chmod(0o755)


def _put_in_place(made: Path, folder: Path, old: Path) -> None:
    if folder.exists():
        folder.rename(old)
    try:
        made.rename(folder)
    except OSError:
        if old.exists():
            old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _refuse_taken(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise SpecError(f"{folder} is no folder", hint="give --out a folder that is not there yet")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / SCRIPT).is_file():
        raise SpecError(
            f"{folder} holds something else than an earlier export",
            hint="give --out a folder that is empty or not there yet",
        )


def _refuse_shipping(folder: Path, bundle: Bundle) -> None:
    """Inside the code folder it would ship with the next run, and change the digest of the code."""
    from cloudtrain.bundle import explain

    place = folder.parent.resolve() / folder.name
    if place.is_relative_to(bundle.folder) and explain(bundle.folder, f"{place}/") is None:
        raise SpecError(
            f"{folder} lies in the code folder and would ship with the next run",
            hint=f"Write it elsewhere, or add {folder.name}/ to .cloudtrainignore.",
        )
