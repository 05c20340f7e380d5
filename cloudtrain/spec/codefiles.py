"""Whether the files that a job names are in its code folder."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cloudtrain.errors import did_you_mean
from cloudtrain.spec.fields import absent
from cloudtrain.spec.problems import Path as Key
from cloudtrain.spec.problems import Problem, problem_at, shown

if TYPE_CHECKING:
    from cloudtrain.job import Job


def missing_files(job: Job) -> Iterator[Problem]:
    """A problem for the code folder, the script and the requirements file that are not there."""
    given = {("entry",): job.entry, ("task",): job.task, _REQUIREMENTS: job.environment.requirements}
    return _missing(job.folder, job.code, {key: name for key, name in given.items() if name is not None})


def missing_beside(given: object, folder: Path, wrong: Collection[Key]) -> Iterator[Problem]:
    """``missing_files`` for a job that is not well-formed: ``given`` is its unchecked data, ``folder`` the one its
    paths are seen from, ``wrong`` the keys whose values are no names of files, or not known to be."""
    code = _text(given, ("code",)) or "."
    if not _is_wrong(("code",), wrong):
        named = {key: name for key in _KEYS if not _is_wrong(key, wrong) and (name := _text(given, key))}
        yield from _missing(folder, code, named)


_REQUIREMENTS = ("environment", "requirements")
_KEYS: tuple[Key, ...] = (("entry",), ("task",), _REQUIREMENTS)


def _is_wrong(key: Key, wrong: Collection[Key]) -> bool:
    return any(key[:depth] in wrong for depth in range(1, len(key) + 1))


def _text(given: object, key: Key) -> str | None:
    for step in key:
        given = given.get(step) if isinstance(given, Mapping) else None
    return None if absent(given) or not isinstance(given, str) else str(given)


def _missing(above: Path, code: str, named: Mapping[Key, str]) -> Iterator[Problem]:
    """``named``: key -> what the job says there."""
    try:
        folder = (above / code).resolve()
        if not folder.is_dir():
            yield problem_at(("code",), f"{folder} is {'not a folder' if folder.exists() else 'not there'}")
            return
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links, until Python 3.13
        yield problem_at(("code",), f"{shown(code)} cannot be looked at: {_reason(error)}")
        return
    for key, said in named.items():
        name = said.rpartition(":")[0] if key == ("task",) else said
        try:
            if not (folder / name).is_file():
                yield problem_at(key, _absence(folder, name))
        except OSError as error:
            yield problem_at(key, f"{shown(name)} cannot be looked at: {_reason(error)}")


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or "it is a link that loops"


def _absence(folder: Path, name: str) -> str:
    wanted = folder / name
    if wanted.exists():
        return f"{name} in {folder} is not a file"
    beside = [item.name for item in wanted.parent.iterdir() if item.is_file()] if wanted.parent.is_dir() else []
    return f"{name} is not in {folder}{did_you_mean(wanted.name, beside)}"
