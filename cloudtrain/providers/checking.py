"""What a cloud would refuse, found offline and placed in the job file where the job says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from cloudtrain.providers import registry
from cloudtrain.providers.overrides import EVERY
from cloudtrain.spec.problems import JobFileError, Problem, dotted, problem_at

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.base import NativeProblem, Request


class Checked(NamedTuple):
    """What was found out about a request."""

    problems: tuple[Problem, ...]
    skipped: str
    """What could not be checked here, and what to install; "" if all was."""


def check_request(job: Job, request: Request) -> Checked:
    """Hold a request against the service's schema and rules."""
    found = registry.check(request.provider, request.native)
    problems = tuple(_placed(job, request.provider, problem) for problem in found.problems)
    return Checked(problems, found.skipped)


def check_overrides(job: Job, request: Request) -> str:
    """Refuse what the service does not know. Returns what could not be checked, "" if all was. Raises JobFileError.

    Only a job with overrides can ask for it, so only then is it worth loading the vendor's package.
    """
    if not job.overrides.get(request.provider):
        return ""
    checked = check_request(job, request)
    if checked.problems:
        raise JobFileError(checked.problems)
    return checked.skipped


def _placed(job: Job, provider: str, problem: NativeProblem) -> Problem:
    """At the override that is to blame, if there is one; otherwise at its field of the request."""
    path = _within(job.overrides.get(provider, {}), problem.path)
    if path:
        below = dotted(problem.path[len(path) :])
        message = f"{below}: {problem.message}" if below else problem.message
        return job.placed(problem_at(("overrides", provider, *path), message, at_key=problem.unknown))
    return Problem(str(job.file or ""), 0, 0, "", f"{provider} request: {problem}")


def _within(overrides: object, path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """As much of the path as the overrides spell out."""
    walked: list[str | int] = []
    for step in path:
        key = next((key for key in (step, str(step), EVERY) if _holds(overrides, key)), None)
        if key is None:
            break
        overrides = overrides[key]  # type: ignore[index]  # _holds has looked
        walked.append(key)
    return tuple(walked)


def _holds(overrides: object, key: str | int) -> bool:
    if isinstance(overrides, Mapping):
        return key in overrides
    return isinstance(overrides, (list, tuple)) and isinstance(key, int) and key < len(overrides)
