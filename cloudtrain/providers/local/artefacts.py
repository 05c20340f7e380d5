"""What a local run has left, and a copy of it elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from cloudtrain.errors import MissingError, RefusedError
from cloudtrain.providers.landing import landing
from cloudtrain.providers.port import Artefact, Progress
from cloudtrain.record.folder import RunFolder

_PIECE = 1 << 20


def artefacts(folder: RunFolder) -> Iterator[Artefact]:
    """Every file of the run's folders, in the order of their paths. Folders that are links are passed by: what they
    lead to is the user's. Raises SpecError if the folder is no run's."""
    for kind, place in _places(folder):
        for path in _files(place):
            try:
                size = path.stat().st_size
            except OSError:  # gone again: an old checkpoint
                continue
            yield Artefact(kind, path.relative_to(place).as_posix(), size, str(path))


def copy(artefact: Artefact, folder: Path, progress: Progress) -> None:
    """Copy it below ``folder``, whole or not at all. Raises SpecError for a path that leads out of it, MissingError if
    the disk does not let us, RefusedError if it is no longer there."""
    try:
        with Path(artefact.source).open("rb") as source, landing(folder, artefact.path) as target:
            done = 0
            while piece := source.read(_PIECE):
                target.write(piece)
                done += len(piece)
                progress(done, max(done, artefact.size))
    except OSError as error:
        reason = error.strerror or error
        if error.filename == artefact.source:
            raise RefusedError(f"{artefact.kind}/{artefact.path} cannot be read: {reason}") from error
        raise MissingError(
            f"cannot copy {artefact.source} to {folder}: {reason}",
            hint="free some space there, or see to it that it can be written; --to names another folder",
        ) from error


def _places(folder: RunFolder) -> Iterator[tuple[str, Path]]:
    data = folder.read_state()
    for kind in ("model", "output", "metrics"):
        yield kind, folder.path / kind
    yield "checkpoints", Path(str(data.get("checkpoints") or folder.path / "checkpoints"))
    outputs = data.get("outputs")
    for name, place in sorted(outputs.items() if isinstance(outputs, dict) else ()):
        yield f"outputs/{name}", Path(str(place))


def _files(folder: Path) -> Iterator[Path]:
    """Files, and links to files; nothing that would wait for a writer."""
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent, name)
            if path.is_file():
                yield path
