"""Whether the files that a job names are in its code folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cloudtrain.errors import did_you_mean
from cloudtrain.spec.problems import Path as Key
from cloudtrain.spec.problems import Problem, problem_at, shown

if TYPE_CHECKING:
    from cloudtrain.job import Job


def missing_files(job: Job) -> Iterator[Problem]:
    """A problem for the code folder, the script and the requirements file that are not there."""
    try:
        folder = job.code_folder
        if not folder.is_dir():
            yield problem_at(("code",), f"{folder} is {'not a folder' if folder.exists() else 'not there'}")
            return
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links, until Python 3.13
        yield problem_at(("code",), f"{shown(job.code)} cannot be looked at: {_reason(error)}")
        return
    for key, name in _named(job):
        try:
            if not (folder / name).is_file():
                yield problem_at(key, _absence(folder, name))
        except OSError as error:
            yield problem_at(key, f"{shown(name)} cannot be looked at: {_reason(error)}")


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or "it is a link that loops"


def _named(job: Job) -> Iterator[tuple[Key, str]]:
    if job.entry is not None:
        yield ("entry",), job.entry
    if job.task is not None:
        yield ("task",), job.task.rpartition(":")[0]
    if job.environment.requirements is not None:
        yield ("environment", "requirements"), job.environment.requirements


def _absence(folder: Path, name: str) -> str:
    wanted = folder / name
    if wanted.exists():
        return f"{name} in {folder} is not a file"
    beside = [item.name for item in wanted.parent.iterdir() if item.is_file()] if wanted.parent.is_dir() else []
    return f"{name} is not in {folder}{did_you_mean(wanted.name, beside)}"
