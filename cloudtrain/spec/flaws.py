"""How a check says what is wrong, and how many such findings become one pydantic ValidationError.

Every message is a whole sentence of ours: none of pydantic's own wording reaches a user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from cloudtrain.spec.problems import Path, Problem, problem_at, shown

T = TypeVar("T")


def wrong(message: str, *, at_key: bool = False) -> PydanticCustomError:
    """The error a check raises. ``at_key``: the key is wrong rather than its value."""
    return PydanticCustomError("at_key" if at_key else "at_value", "{message}", {"message": message})


def flaw(path: Path, message: str, *, at_key: bool = False) -> InitErrorDetails:
    """One finding, ``path`` seen from the value that is being checked."""
    return {"type": wrong(message, at_key=at_key), "loc": path, "input": None}


def flaws_of(error: ValidationError, under: Path = ()) -> list[InitErrorDetails]:
    """The findings inside a ValidationError, to be raised again together with others."""
    return [
        flaw((*under, *found["loc"]), found["msg"], at_key=found["type"] == "at_key")
        for found in error.errors(include_url=False, include_input=False)
    ]


def all_flaws(found: Iterable[InitErrorDetails]) -> ValidationError:
    """One error that holds all findings."""
    return ValidationError.from_exception_data("job", list(found))


def checked(check: Callable[[object], T], value: object, found: list[InitErrorDetails], under: Path = ()) -> T | None:
    """``check(value)``; what it finds wrong is added to ``found`` instead of being raised."""
    try:
        return check(value)
    except PydanticCustomError as error:
        found.append(flaw(under, error.message(), at_key=error.type == "at_key"))
    except ValidationError as error:
        found += flaws_of(error, under)
    return None


def problems_of(error: ValidationError) -> list[Problem]:
    """What a user is shown, without places yet."""
    return [
        problem_at(found["loc"], found["msg"], at_key=found["type"] == "at_key")
        for found in error.errors(include_url=False, include_input=False)
    ]


def kind(value: object) -> str:
    """What a value is, for "must be text, not a list"."""
    if value is None or value == "":
        return "nothing" if value is None else "''"
    if isinstance(value, (Mapping, BaseModel)):
        return "a mapping"
    if isinstance(value, (list, tuple, set, frozenset)):
        return "a list"
    return shown(value)
