"""What can go wrong, as one short tree.

CloudtrainError (5: a fault of ours)
├── JobFailed     (1: the job ran and failed)
├── SpecError     (2: the command line or the job file is wrong)
├── MissingError  (3: something is missing here: a package, a credential, a tool, disk space)
│   └── UnreachableError (3: no answer from the cloud)
└── RefusedError  (4: the cloud refused: quota, capacity, permission)
    └── NotFoundError (4: it has no such thing; where a user named it, 2)

Every message says what and where; ``hint`` says what to do next. The command line prints both and exits with
``exit_code``; 130 (interrupted) and 143 (preempted) are results of a run, not errors.
"""

from __future__ import annotations

from collections.abc import Iterable


class CloudtrainError(Exception):
    """Root of all errors raised on purpose. ``str(error)`` is the message with the hint, if any, on a second line."""

    exit_code = 5

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n{self.hint}"


class JobFailed(CloudtrainError):
    """The job ran and did not succeed."""

    exit_code = 1


class SpecError(CloudtrainError):
    """The job file or the command line is wrong; nothing was started."""

    exit_code = 2


class MissingError(CloudtrainError):
    """Something this machine lacks: a package, a credential, a tool, a permission, disk space."""

    exit_code = 3


class UnreachableError(MissingError):
    """No answer from the cloud, or none that makes sense, after all retries. What was asked may have been done."""


class RefusedError(CloudtrainError):
    """The cloud refused. ``cause`` says why, in the words of ``providers.port.Cause``."""

    exit_code = 4

    def __init__(self, message: str, *, hint: str | None = None, cause: str = "") -> None:
        super().__init__(message, hint=hint)
        self.cause = cause


class NotFoundError(RefusedError):
    """The cloud has no such job, file or place."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name a misspelt ``word`` most likely stands for, or None if none is near."""
    import difflib  # for what is misspelt only: a millisecond of every other command

    by_lower = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``", did you mean 'nodes'?"`` or an empty string, to be put behind a message."""
    name = nearest(word, known)
    return f", did you mean {name!r}?" if name else ""


def either(names: Iterable[str]) -> str:
    """``a``, ``a or b``, ``a, b or c``."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last
