"""What is wrong with a job, as a list: every problem has a key, and a line and a column when a file was read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from cloudtrain.errors import SpecError

Path = tuple[str | int, ...]  # from the top of a job or request down to a value: ("data", "train", "uri")

_SIMPLE_KEY = r"[\w-]+"


class Problem(NamedTuple):
    """One thing to mend. ``line`` and ``column`` count from 1; both are 0, ``file`` empty, where none was read."""

    file: str
    line: int
    column: int
    key: str  # dotted, such as resources.nodes; empty where the whole file is meant
    message: str  # what is wrong and what would be right, on one line
    path: Path = ()
    at_key: bool = False  # the key itself is wrong, not its value

    def __str__(self) -> str:
        place = f"{_one_line(self.file)}:{self.line}:{self.column}: " if self.line else ""
        return f"{place}{self.key}: {self.message}" if self.key else f"{place}{self.message}"

    def as_dict(self) -> dict[str, str | int]:
        """The five public fields, ready for JSON."""
        return {"file": self.file, "line": self.line, "column": self.column, "key": self.key, "message": self.message}


class JobFileError(SpecError):
    """The job is wrong. ``problems`` is all that was found, in the order of the file; ``str`` is one line for each."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.line, problem.column)))
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[type[JobFileError], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)


def problem_at(path: Path, message: str, *, at_key: bool = False) -> Problem:
    """A problem that has no place in a file yet."""
    return Problem("", 0, 0, dotted(path), _one_line(message), path, at_key)


def dotted(path: Path) -> str:
    """``("data", "train", "uri")`` as ``data.train.uri``; list items as ``args[2]``, odd keys in quotes."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{_key(step)}"
    return text.removeprefix(".")


def shown(value: object) -> str:
    """A value as a message shows it: one line, never longer than a few words."""
    text = repr(str(value) if isinstance(value, str) else value)
    return text if len(text) <= 60 else f"{text[:50]}...{text[-5:]}"


def _key(key: str) -> str:
    return key if re.fullmatch(_SIMPLE_KEY, key) and len(key) <= 60 else shown(key)


def _one_line(text: str) -> str:
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
