"""Job files: YAML text to a Job with every problem placed by file, line and column, and a Job back to YAML text."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from cloudtrain.job import Job, Source
from cloudtrain.spec.codefiles import missing_beside
from cloudtrain.spec.flaws import problems_of
from cloudtrain.spec.native import is_text
from cloudtrain.spec.problems import JobFileError, Problem, dotted
from cloudtrain.spec.yamltext import MOST_BYTES, Document, NotYaml, read

_NEVER_FOLD = 1 << 30

__all__ = ["JobFileError", "Problem", "dump", "load", "parse"]


def load(path: Path) -> Job:
    """The job in a file. Raises JobFileError for anything wrong, an unreadable file included."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL
        raise JobFileError([Problem(str(path), 1, 1, "", _unreadable(path, error))]) from None
    if path.suffix == ".py":
        names_it = (
            f"JOB is a job file, which names it:  entry: {path.name}  (cloudtrain init --template script shows one)"
        )
        raise JobFileError([Problem(str(path), 1, 1, "", f"this is a script; {names_it}")])
    return _parsed(content, path, read_there=True)


def parse(text: str | bytes, path: Path | None = None) -> Job:
    """The job in a text that lies, or would lie, at ``path``. Raises JobFileError."""
    return _parsed(text, path, read_there=False)


def _parsed(text: str | bytes, path: Path | None, *, read_there: bool) -> Job:
    file = path or Path("<text>")
    try:
        document = read(text)
    except NotYaml as error:
        raise JobFileError([Problem(str(file), error.line, error.column, "", error.message)]) from None
    source = Source(file, path.absolute().parent if path else None, document.places)
    return _job(document, source, read_there)


def dump(job: Job) -> str:
    """YAML of what differs from the defaults, in the order of the fields."""
    return yaml.dump(
        job.given(), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_NEVER_FOLD, default_flow_style=False
    )


def _job(document: Document, source: Source, read_there: bool) -> Job:
    """``read_there``: its folder can be looked at, so that of a job that is wrong missing files are told, too."""
    problems = [
        Problem(str(source.file), line, column, dotted(path), message)
        for (line, column), (path, message) in document.flaws.items()
    ]
    job = None
    try:
        job = Job.model_validate(document.data)
    except ValidationError as error:
        found = [problem for problem in problems_of(error) if problem.path not in document.unread]
        if read_there and source.folder is not None:
            wrong = {*document.unread, *(problem.path for problem in found)}
            found += missing_beside(document.data, source.folder, wrong)
        problems += map(source.placed, found)
    if job is None or problems:
        raise JobFileError(problems)
    job._source = source
    return job


def _unreadable(path: Path, error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    with suppress(OSError):  # Windows calls a folder forbidden, and what is forbidden need not let itself be looked at
        if isinstance(error, IsADirectoryError) or path.is_dir():
            return "this is a folder; name the job file in it"
    return f"cannot be read: {getattr(error, 'strerror', None) or error}"


class _Dumper(yaml.SafeDumper):
    """Quotes every text that would be read as something else, and shows no aliases."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True

    def text(self, data: str) -> yaml.ScalarNode:
        style = '"' if not data.isprintable() else None if is_text(data) and data != "<<" else "'"
        return self.represent_scalar("tag:yaml.org,2002:str", str(data), style=style)

    def words(self, data: tuple[object, ...]) -> yaml.SequenceNode:
        return self.represent_sequence("tag:yaml.org,2002:seq", data)


_Dumper.add_representer(str, _Dumper.text)
_Dumper.add_multi_representer(str, _Dumper.text)  # Duration
_Dumper.add_representer(tuple, _Dumper.words)
