"""The form held against the vendor's own loader, ``azure.ai.ml.load_job``: no account, no call.

The loader reads a file with the code folder beside it, so both are made for a moment. It tells all that it finds in
nested messages, with one branch for each kind a section might be; only the branch that was meant is of use.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cloudtrain.errors import MissingError
from cloudtrain.providers.base import NativeProblem
from cloudtrain.providers.vendor import importing
from cloudtrain.providers.written import as_yaml
from cloudtrain.spec.problems import Path as Steps

_NAMED = ("inputs", "outputs", "services", "tags", "properties")
"""Mappings from names of the user's: below each, the loader tells apart what is wrong with the key and the value."""


def problems(native: Mapping[str, Any]) -> tuple[NativeProblem, ...]:
    """What the loader refuses. Raises ImportError without the vendor's package."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the vendor's package, on what it imports
        with importing():
            from azure.ai.ml import load_job
            from marshmallow import ValidationError

        try:
            with written_form(native) as file, quiet():
                load_job(file)
        except MissingError:
            raise
        except Exception as error:  # noqa: BLE001 - what it raises is of several families, and some of Python's own
            nested = next((found for found in _chain(error) if isinstance(found, ValidationError)), None)
            if nested is None or not isinstance(nested.messages, dict):
                return (NativeProblem((), _one_line(str(error))),)
            return tuple(_flat(nested.messages, native, ()))
    return ()


@contextmanager
def written_form(native: Mapping[str, Any]) -> Iterator[Path]:
    """The form as a file, for as long as it is needed. Raises MissingError where no file can be made."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="cloudtrain-")
        Path(folder.name, "code").mkdir()
        file = Path(folder.name, "job.yml")
        file.write_text(as_yaml(native), encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        hint = "Set TMPDIR to a folder that can be written: azure-ai-ml reads requests from files."
        raise MissingError(f"cannot write to {tempfile.gettempdir()}: {reason}", hint=hint) from error
    with folder:
        yield file


@contextmanager
def quiet() -> Iterator[None]:
    """The package tells of each experimental field, and of errors that it raises as well. Its level is set when it is
    imported."""
    logger = logging.getLogger("azure.ai.ml")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _chain(error: BaseException | None) -> list[BaseException]:
    """The error and what it was raised from, the innermost first: the outer ones hold the same as text."""
    found: list[BaseException] = []
    while error is not None:
        found.insert(0, error)
        error = error.__cause__ or error.__context__
    return found


def _flat(messages: Any, value: Any, path: Steps) -> Iterator[NativeProblem]:
    """The messages with their paths. ``value`` is what stands in the form at ``path``."""
    if isinstance(messages, str):
        unknown = messages == "Unknown field."
        yield NativeProblem(path, "unknown field" if unknown else _one_line(messages), unknown)
    elif isinstance(messages, (list, tuple)):
        for message in _meant(messages, value):
            yield from _flat(message, value, path)
    elif isinstance(messages, dict):
        words = {"_schema", None} | ({"key", "value"} if len(path) == 2 and path[0] in _NAMED else set())
        for key, below in messages.items():
            if key in words:  # of the loader, not fields
                yield from _flat(below, value, path)
            elif isinstance(value, Mapping) and key in value:
                yield from _flat(below, value[key], (*path, key))
            else:
                yield from _flat(below, None, (*path, key))


def _meant(messages: list[Any] | tuple[Any, ...], value: Any) -> list[Any]:
    """Of the branches of a section: the one whose type is right, or else the one with least to say."""
    branches = [message for message in messages if isinstance(message, dict)]
    if not branches:
        return [message for message in messages if isinstance(message, str)] or list(messages[:1])
    fields = [branch for branch in branches if set(branch) - {"_schema", None}]
    right = [branch for branch in fields if "type" not in branch]
    pool = (right or fields or branches) if isinstance(value, Mapping) else branches
    return [min(pool, key=lambda branch: len(str(branch)))]


def _one_line(message: str) -> str:
    """The first line says it; the rest is advice on editors, and paths of this moment."""
    first = message.strip().splitlines()[0] if message.strip() else "is refused"
    return f"azure-ai-ml: {first.rstrip('.:')}"
