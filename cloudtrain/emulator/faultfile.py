"""The fault file: what is to go wrong, as YAML. Read and checked here, applied by ``faults.py``; docs/emulate.md.

calls:                                                       # one call of a service's API
  - {operation: CreateTrainingJob, provider: sagemaker, fault: throttle, times: 2}
  - {operation: "*", fault: error, status: 503, share: 0.1}  # a share of the calls instead of the first ones
  - {operation: DescribeTrainingJob, fault: slow, seconds: 5}
jobs:                                                        # one job, by its name in the cloud
  - {name: "digits-*", fault: preempt, at: 5s, times: 2}
  - {fault: lose-node, node: 1, at: 5s}
logs:
  - {fault: late}
"""

# Not `from __future__ import annotations`: pydantic would have to compile the text of every field's type.

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, ValidationError
from pydantic_core import InitErrorDetails

from cloudtrain.emulator.callnames import CALLS
from cloudtrain.errors import did_you_mean
from cloudtrain.spec.fields import CLOUDS, Annotation, Choice, Plain, Positive, Text, Whole, absent
from cloudtrain.spec.flaws import flaw, kind, problems_of, wrong
from cloudtrain.spec.problems import JobFileError, Problem, dotted
from cloudtrain.spec.sections import Section
from cloudtrain.spec.yamltext import MOST_BYTES, Document, NotYaml, read

CallKind = Literal["throttle", "error", "slow", "lost", "cut", "expired-token"]
JobKind = Literal[
    "quota", "capacity", "image-missing", "preempt", "preempt-without-notice", "lose-node", "unknown-state"
]
LogKind = Literal["late", "empty-pages", "out-of-order"]

_PREEMPTIONS = ("preempt", "preempt-without-notice")
_UNITS = {"s": 1.0, "m": 60.0}


class _Share(Positive):
    """A number above 0 and at most 1."""

    def check(self, value: object) -> float:
        number = super().check(value)
        if number > 1:
            raise wrong(f"must be a share of the calls, above 0 and at most 1, not {kind(value)}")
        return number


class _Seconds(Annotation):
    """``5s``, ``0.5s``, ``1m``; a bare number is seconds."""

    def check(self, value: object) -> float:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = Plain(value)
        match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)([sm]?)", value) if isinstance(value, str) else None
        if not match:
            raise wrong(f"must be a time such as 5s, 0.5s or 1m, not {kind(value)}")
        return float(match[1]) * _UNITS[match[2] or "s"]

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "number"]}


class CallEntry(Section):
    """What happens to calls of a service's API."""

    fault: Annotated[CallKind, Choice(get_args(CallKind))] = Field(description="What happens.")
    operation: Annotated[str, Text()] = Field(default="*", description="The call's name, a pattern.")
    provider: Annotated[str | None, Choice(CLOUDS)] = Field(default=None, description="Of this one alone.")
    times: Annotated[int | None, Whole(1)] = Field(default=None, description="To the first so many calls; 1.")
    share: Annotated[float | None, _Share()] = Field(default=None, description="To a share of all calls instead.")
    status: Annotated[int | None, Whole(400, 599)] = Field(default=None, description="HTTP status of an error; 500.")
    seconds: Annotated[float | None, _Seconds()] = Field(default=None, description="How much later the answer comes.")

    @classmethod
    def rules(cls, given: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        """What belongs to another fault, and what is needed for this one."""
        if "times" in given and "share" in given:
            yield flaw(("share",), "cannot stand beside times: give the one or the other")
        yield from _only(given, "status", ("error",))
        yield from _only(given, "seconds", ("slow",))
        if given.get("fault") == "slow" and "seconds" not in given:
            yield flaw(("fault",), "slow needs seconds: how much later the answer comes")
        yield from _known_call(given.get("operation"), given.get("provider"))


class JobEntry(Section):
    """What happens to jobs."""

    fault: Annotated[JobKind, Choice(get_args(JobKind))] = Field(description="What happens.")
    name: Annotated[str, Text()] = Field(default="*", description="The job's name in the cloud, a pattern.")
    provider: Annotated[str | None, Choice(CLOUDS)] = Field(default=None, description="Of this one alone.")
    times: Annotated[int | None, Whole(1)] = Field(
        default=None,
        description="Preemptions: of a job's first so many starts (1). Others: of so many jobs (all).",
    )
    at: Annotated[float, _Seconds()] = Field(default=0.0, description="How long after the containers were started.")
    node: Annotated[int | None, Whole(0)] = Field(default=None, description="Which node is lost.")
    state: Annotated[str | None, Text()] = Field(default=None, description="The state that nobody knows.")

    @classmethod
    def rules(cls, given: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        """What belongs to another fault, and what is needed for this one."""
        yield from _only(given, "at", (*_PREEMPTIONS, "lose-node"))
        yield from _only(given, "node", ("lose-node",))
        yield from _only(given, "state", ("unknown-state",))
        for fault, needed in (("lose-node", "node"), ("unknown-state", "state")):
            if given.get("fault") == fault and needed not in given:
                yield flaw(("fault",), f"{fault} needs {needed}")
        if given.get("fault") == "lose-node" and "times" in given:
            yield flaw(("times",), "is for others than lose-node: a node is lost in a job's first start", at_key=True)


class LogEntry(Section):
    """How logs are given out."""

    fault: Annotated[LogKind, Choice(get_args(LogKind))] = Field(description="What happens.")
    provider: Annotated[str | None, Choice(CLOUDS)] = Field(default=None, description="Of this one alone.")


def _is_list(value: object) -> object:
    if not isinstance(value, (list, tuple)):
        raise wrong(f"must be a list of entries, not {kind(value)}")
    return value


_LIST = BeforeValidator(_is_list)


class FaultFile(Section):
    """All of it."""

    calls: Annotated[tuple[CallEntry, ...], _LIST] = Field(default=(), description="Faults of calls, each on its own.")
    jobs: Annotated[tuple[JobEntry, ...], _LIST] = Field(default=(), description="Faults of jobs, taken together.")
    logs: Annotated[tuple[LogEntry, ...], _LIST] = Field(default=(), description="Faults of logs, taken together.")


def _only(given: Mapping[str, Any], key: str, faults: tuple[str, ...]) -> Iterator[InitErrorDetails]:
    if key in given and given.get("fault") not in faults:
        yield flaw((key,), f"is for {' and '.join(faults)} only", at_key=True)


def _known_call(name: object, provider: object) -> Iterator[InitErrorDetails]:
    """A misspelt one would never come. Patterns are taken as they are."""
    if not isinstance(name, str) or absent(name) or any(sign in name for sign in "*?["):
        return
    known = CALLS.get(str(provider)) or tuple(dict.fromkeys(each for names in CALLS.values() for each in names))
    if name not in known:
        what = did_you_mean(name, known) or "; docs/emulate.md lists them, and a pattern such as 'List*' is not checked"
        yield flaw(("operation",), f"{name!r} is no call that is known{what}")


def load(path: Path) -> FaultFile:
    """The file at ``path``. Raises JobFileError with all that is wrong, each with its line."""
    try:
        with path.open("rb") as file:
            document = read(file.read(MOST_BYTES + 1))
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL
        message = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise JobFileError([Problem(str(path), 1, 1, "", message)]) from None
    except NotYaml as error:
        raise JobFileError([Problem(str(path), error.line, error.column, "", error.message)]) from None
    return _checked(document, path)


def _checked(document: Document, path: Path) -> FaultFile:
    problems = [
        Problem(str(path), line, column, dotted(key), message)
        for (line, column), (key, message) in document.flaws.items()
    ]
    try:
        found = FaultFile.model_validate({} if absent(document.data) else document.data)
    except ValidationError as error:
        placed = [_placed(problem, document, path) for problem in problems_of(error)]
        # What is no value at all has been told of, and is of no type.
        problems += [problem for problem in placed if (problem.line, problem.column) not in document.flaws]
    if problems:
        raise JobFileError(problems)
    return found


def _placed(problem: Problem, document: Document, path: Path) -> Problem:
    """With its place in the file, or that of the nearest thing around it which has one."""
    for depth in range(len(problem.path), -1, -1):
        exact = depth == len(problem.path)
        place = document.places.get((problem.path[:depth], exact and problem.at_key))
        if place:
            return problem._replace(file=str(path), line=place[0], column=place[1])
    return problem._replace(file=str(path), line=1, column=1)
