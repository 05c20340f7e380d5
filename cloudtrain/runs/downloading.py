"""Brings what a run has left into a folder: ``<folder>/model/...``, ``output/``, ``metrics/``, ``outputs/<name>/``."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from cloudtrain.errors import SpecError, did_you_mean
from cloudtrain.providers.port import Progress
from cloudtrain.runs.folder import cannot_write

if TYPE_CHECKING:
    from cloudtrain.runs.run import Run

KINDS = ("model", "output", "metrics", "outputs", "checkpoints")
BY_DEFAULT = frozenset(KINDS) - {"checkpoints"}


def download(run: Run, folder: Path, kinds: Collection[str] | None, progress: Progress) -> list[Path]:
    """See ``Run.download``. ``kinds`` are those of KINDS, or ``outputs/NAME``."""
    wanted = _known(kinds)
    found = [artefact for artefact in run.artefacts() if _is_wanted(artefact.kind, wanted)]
    if not found:
        raise SpecError(f"run {run.run_id} has left no {' or '.join(sorted(wanted))}")
    folders: dict[Path, None] = {}
    total = sum(max(artefact.size, 0) for artefact in found)
    done = 0
    for artefact in found:
        place = folder / artefact.kind
        try:
            place.mkdir(parents=True, exist_ok=True)
            run.client.fetch(artefact, place, lambda part, _, before=done: progress(before + part, total))  # type: ignore[misc]
        except OSError as error:
            raise cannot_write(error, place) from error
        done += max(artefact.size, 0)
        progress(done, total)
        folders.setdefault(place)
    return list(folders)


def _known(kinds: Collection[str] | None) -> frozenset[str]:
    for kind in kinds or ():
        if kind not in KINDS and not kind.startswith("outputs/"):
            raise SpecError(f"no such results: {kind}{did_you_mean(kind, KINDS) or '; known: ' + ', '.join(KINDS)}")
    return frozenset(kinds) if kinds else BY_DEFAULT


def _is_wanted(kind: str, wanted: frozenset[str]) -> bool:
    return kind in wanted or kind.partition("/")[0] in wanted
