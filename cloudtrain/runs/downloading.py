"""Brings what a run has left into a folder: ``<folder>/model/...``, ``output/``, ``metrics/``, ``outputs/<name>/``.

Everything is fetched beside its place first: what an archive holds is known only then, and a file that differs from
one that lies there already must not be lost. That folder is locked while it is filled; one that nobody holds was left
by a download that was killed, and goes with the next.
"""

from __future__ import annotations

import contextlib
import filecmp
import os
import secrets
import shutil
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from cloudtrain.errors import CloudtrainError, SpecError, did_you_mean
from cloudtrain.providers.landing import below
from cloudtrain.providers.port import Artefact, Progress
from cloudtrain.record.folder import cannot_write, keep_from_shipping
from cloudtrain.spec.problems import shown

if TYPE_CHECKING:
    from cloudtrain.runs.run import Run

KINDS = ("model", "output", "metrics", "outputs", "checkpoints")
BY_DEFAULT = frozenset(KINDS) - {"checkpoints"}
_MOST_NAMED = 5
_FRESH = ".cloudtrain-"
"""How the folders begin in which files arrive."""


def download(
    run: Run,
    folder: Path,
    kinds: Collection[str] | None,
    progress: Progress,
    *,
    force: bool = False,
    alone: bool = False,
) -> list[Path]:
    """See ``Run.download``. ``kinds`` are those of KINDS, or ``outputs/NAME``. Names that would lead out of the folder
    are left out, which is an error, and the rest is there. ``alone``: the folder is for this alone, and most likely in
    a project whose next job must not be another one for it."""
    wanted = _known(kinds)
    found = [artefact for artefact in run.artefacts() if _is_wanted(artefact.kind, wanted)]
    if not found:
        what = f"no {' or '.join(sorted(wanted))}" if kinds else "nothing: no model, output, metrics or outputs"
        raise SpecError(
            f"run {run.run_id} has left {what}", hint=f"cloudtrain status {run.run_id} says how far it has come"
        )
    try:
        if not force:
            _refuse(folder, [one for one in _first_of_each_name(found) if _differs_in_size(one, folder)])
        with _arriving(folder) as fresh:
            if alone:
                keep_from_shipping(folder)
            left_out = _fetch(run, found, fresh, progress)
            _refuse(folder, list(_put_in_place(fresh, folder, force)))
    except OSError as error:
        raise cannot_write(error, folder) from error
    if left_out:
        _tell_what_was_left_out([error.message.replace(str(fresh), str(folder)) for error in left_out])
    return list(dict.fromkeys(below(folder, artefact.kind) for artefact in found))


@contextmanager
def _arriving(folder: Path) -> Iterator[Path]:
    """A folder beside the places of the files, ours alone, and gone at the end. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob(f"{_FRESH}*"):
        _remove_if_left(left)
    while (made := _made_and_held(folder)) is None:  # another download took it for one that was left
        pass
    fresh, held = made
    try:
        yield fresh
    except CloudtrainError as error:  # whoever reads it does not find that folder
        error.message = error.message.replace(str(fresh), str(folder))
        raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        _let_go(held)


def _made_and_held(folder: Path) -> tuple[Path, int] | None:
    """A new folder, and its lock; None if it is gone already. Never twice by one name, which somebody may be about to
    remove."""
    fresh = folder / f"{_FRESH}{secrets.token_hex(8)}"
    fresh.mkdir()
    try:
        held = _hold(fresh)
    except (FileNotFoundError, BlockingIOError):
        return None
    if fresh.is_dir():
        return fresh, held
    _let_go(held)
    return None


def _remove_if_left(fresh: Path) -> None:
    with contextlib.suppress(OSError):
        held = _hold(fresh)
        if held >= 0:
            shutil.rmtree(fresh, ignore_errors=True)
            _let_go(held)


def _hold(fresh: Path) -> int:
    """Lock the folder, as long as this process lives. -1 where that cannot be done. Raises BlockingIOError if somebody
    else does."""
    if sys.platform == "win32":
        return -1
    import fcntl

    fd = os.open(fresh, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise
    except OSError:  # a file system without locks
        os.close(fd)
        return -1
    return fd


def _let_go(held: int) -> None:
    if held >= 0:
        os.close(held)


def _tell_what_was_left_out(messages: list[str]) -> None:
    more = len(messages) - _MOST_NAMED
    rest = [f"and {more} more like these"] if more > 0 else []
    what = "it was" if len(messages) == 1 else f"these {len(messages)} were"
    text = "\n".join([*messages[:_MOST_NAMED], *rest])
    raise SpecError(text, hint=f"{what} left out; all else has been downloaded")


def _fetch(run: Run, found: list[Artefact], fresh: Path, progress: Progress) -> list[SpecError]:
    """All but what has a name that is no path below ``fresh``; returns what is wrong with that."""
    total = sum(max(artefact.size, 0) for artefact in found)
    done, left_out = 0, []
    for artefact in found:
        try:
            place = below(fresh, artefact.kind)
            place.mkdir(parents=True, exist_ok=True)
            _refuse_twice(place, artefact)
            run.client.fetch(artefact, place, partial(_tell_part, progress, done, total))
        except SpecError as error:
            left_out.append(error)
        done += max(artefact.size, 0)
        progress(done, total)
    return left_out


def _refuse_twice(place: Path, artefact: Artefact) -> None:
    """Two names in a store may be one on a disk: ``a//b`` and ``a/b``, or ``A`` and ``a`` where case does not count.
    The first stays."""
    if _is_file(below(place, artefact.path)):
        raise SpecError(f"{shown(artefact.path)} is the name of another file of the run, too, as this disk takes names")


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


def _first_of_each_name(found: list[Artefact]) -> list[Artefact]:
    """Without those that are going to be refused for the name of another."""
    return list({PurePosixPath(one.kind, one.path): one for one in reversed(found)}.values())[::-1]


def _differs_in_size(artefact: Artefact, folder: Path) -> bool:
    """What is seen before a byte has been sent."""
    try:
        target = below(below(folder, artefact.kind), artefact.path)
    except SpecError:  # it will not be there
        return False
    return artefact.size >= 0 and _is_file(target) and target.stat().st_size != artefact.size


def _is_file(path: Path) -> bool:
    """Also of a path that is too long for any."""
    try:
        return path.is_file()
    except OSError:
        return False


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
