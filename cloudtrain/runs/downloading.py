"""Brings what a run has left into a folder: ``<folder>/model/...``, ``output/``, ``metrics/``, ``outputs/<name>/``.

Everything is fetched beside its place first: what an archive holds is known only then, and a file that differs from
one that lies there already must not be lost.
"""

from __future__ import annotations

import filecmp
import secrets
import shutil
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cloudtrain.errors import SpecError, did_you_mean
from cloudtrain.providers.landing import below
from cloudtrain.providers.port import Artefact, Progress
from cloudtrain.record.folder import cannot_write
from cloudtrain.spec.problems import shown

if TYPE_CHECKING:
    from cloudtrain.runs.run import Run

KINDS = ("model", "output", "metrics", "outputs", "checkpoints")
BY_DEFAULT = frozenset(KINDS) - {"checkpoints"}
_MOST_NAMED = 5


def download(
    run: Run, folder: Path, kinds: Collection[str] | None, progress: Progress, *, force: bool = False
) -> list[Path]:
    """See ``Run.download``. ``kinds`` are those of KINDS, or ``outputs/NAME``. Names that would lead out of the folder
    are left out, which is an error, and the rest is there."""
    wanted = _known(kinds)
    found = [artefact for artefact in run.artefacts() if _is_wanted(artefact.kind, wanted)]
    if not found:
        what = f"no {' or '.join(sorted(wanted))}" if kinds else "nothing: no model, output, metrics or outputs"
        raise SpecError(
            f"run {run.run_id} has left {what}", hint=f"cloudtrain status {run.run_id} says how far it has come"
        )
    fresh = folder / f".cloudtrain-{secrets.token_hex(8)}"
    try:
        if not force:
            _refuse(folder, [one for one in found if _differs_in_size(one, folder)])
        fresh.mkdir(parents=True)
        left_out = _fetch(run, found, fresh, progress)
        _refuse(folder, list(_put_in_place(fresh, folder, force)))
    except OSError as error:
        raise cannot_write(error, folder) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    if left_out:
        message = left_out[0].message.replace(str(fresh), str(folder))
        raise SpecError(message, hint="it was left out; all else has been downloaded")
    return list(dict.fromkeys(below(folder, artefact.kind) for artefact in found))


def _fetch(run: Run, found: list[Artefact], fresh: Path, progress: Progress) -> list[SpecError]:
    """All but what has a name that is no path below ``fresh``; returns what is wrong with that."""
    total = sum(max(artefact.size, 0) for artefact in found)
    done, left_out = 0, []
    for artefact in found:
        place = below(fresh, artefact.kind)
        place.mkdir(parents=True, exist_ok=True)
        try:
            run.client.fetch(artefact, place, partial(_tell_part, progress, done, total))
        except SpecError as error:
            left_out.append(error)
        done += max(artefact.size, 0)
        progress(done, total)
    return left_out


def _tell_part(progress: Progress, before: int, total: int, part: int, _: int) -> None:
    progress(before + part, total)


def _put_in_place(fresh: Path, folder: Path, force: bool) -> Iterator[str]:
    """Move what was fetched into ``folder``; yields the paths of what is not moved since something else is there."""
    for source in sorted(fresh.rglob("*")):
        path = source.relative_to(fresh)
        target = folder / path
        if source.is_dir() and not source.is_symlink():
            target.mkdir(parents=True, exist_ok=True)
        elif force or not target.exists() or filecmp.cmp(source, target, shallow=False):
            source.replace(target)
        else:
            yield path.as_posix()


def _differs_in_size(artefact: Artefact, folder: Path) -> bool:
    """What is seen before a byte has been sent."""
    try:
        target = below(below(folder, artefact.kind), artefact.path)
    except SpecError:  # it will not be there
        return False
    return artefact.size >= 0 and target.is_file() and target.stat().st_size != artefact.size


def _refuse(folder: Path, differing: list[Artefact] | list[str]) -> None:
    if differing:
        names = [one if isinstance(one, str) else f"{one.kind}/{one.path}" for one in differing]
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        raise SpecError(
            f"{folder} has other files already: {', '.join(map(shown, names[:_MOST_NAMED]))}{more}",
            hint="--to another folder keeps both; --force replaces them",
        )


def _known(kinds: Collection[str] | None) -> frozenset[str]:
    for kind in kinds or ():
        if kind not in KINDS and not kind.startswith("outputs/"):
            raise SpecError(f"no such results: {kind}{did_you_mean(kind, KINDS) or '; known: ' + ', '.join(KINDS)}")
    return frozenset(kinds) if kinds else BY_DEFAULT


def _is_wanted(kind: str, wanted: frozenset[str]) -> bool:
    return kind in wanted or kind.partition("/")[0] in wanted
