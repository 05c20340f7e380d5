"""Providers of other people's packages: entry points of the group ``cloudtrain.providers``.

    [project.entry-points."cloudtrain.providers"]
    toy = "cloudtrain_toy"

What is installed is looked through only for a name that is none of ours, and a package is imported only where its
provider is used. A name of ours is never theirs. What such a package does wrong ends in an error that names it; what
its authors have to write is in docs/providers.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloudtrain.errors import CloudtrainError, MissingError, SpecError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from types import TracebackType

GROUP = "cloudtrain.providers"
OURS = ("sagemaker", "vertex", "azureml", "local")
_NAME = re.compile(r"[a-z][a-z0-9]{0,30}")
"""Part of variables (CLOUDTRAIN_<NAME>_<KEY>), of ``NAME:ID``, and a section of cloudtrain.toml."""
_SHOWN = 300


def names() -> tuple[str, ...]:
    """The providers that installed packages bring. Imports none of them."""
    return tuple(sorted(name for name in _entries() if _NAME.fullmatch(name)))


def knows(name: str) -> bool:
    """Whether a package brings this provider. Raises SpecError if two do, or if its name can be none."""
    entries = _entries().get(name, ())
    if entries and not _NAME.fullmatch(name):
        raise SpecError(
            f"{_package(entries[0])} calls a provider {name!r}: the name must be 1 to 31 of a-z 0-9, a letter first"
        )
    if len(entries) > 1:
        raise SpecError(
            f"two packages bring a provider {name}: {' and '.join(map(_package, entries))}",
            hint="uninstall one of them",
        )
    return bool(entries)


def package(name: str) -> str:
    """``cloudtrain-toy 1.0``: the package that brings the provider."""
    return _package(_entries()[name][0])


def value(name: str, module: str, attribute: str) -> Any:
    """What a module of the provider's package holds; of one that is a single module, what that holds.

    Raises MissingError for what cannot be loaded or is not there.
    """
    root = _entries()[name][0].value
    with guarded(name, "cannot be loaded"):
        found = import_module(root)
        if hasattr(found, "__path__"):
            root = f"{root}.{module}"
            found = import_module(root)
        if not hasattr(found, attribute):
            raise broken(name, f"{root} has no {attribute}")
        return getattr(found, attribute)


def has(name: str, module: str, attribute: str) -> bool:
    """Whether the package has that optional module; of one that is a single module, whether that has the attribute."""
    from importlib.util import find_spec

    root = _entries()[name][0].value
    with guarded(name, "cannot be loaded"):
        found = import_module(root)
        return find_spec(f"{root}.{module}") is not None if hasattr(found, "__path__") else hasattr(found, attribute)


def broken(name: str, why: str) -> MissingError:
    """The error for a package that does not keep what providers promise."""
    return MissingError(
        f"provider {name} of {package(name)}: {why}",
        hint="this is a fault of that package: install another version of it, or tell its authors",
    )


@contextmanager
def guarded(name: str, what: str = "failed") -> Iterator[None]:
    """Errors of ours go through; whatever else the package raises becomes a MissingError that names it, and where.

    A provider of ours is let be: what it raises is a fault of cloudtrain's.
    """
    try:
        yield
    except CloudtrainError:
        raise
    except Exception as error:
        if name in OURS:
            raise
        text = " ".join(f"{type(error).__name__}: {error}".split())[:_SHOWN]
        raise broken(name, f"{what}: {text}{_place(error.__traceback__)}") from error


def called(name: str, module: str, function: str, *arguments: Any) -> Any:
    """What a function of the package returns."""
    act = value(name, module, function)
    with guarded(name, f"{function} failed"):
        return act(*arguments)


class GuardedClient:
    """A package's port to its service: whatever its methods raise names the package."""

    def __init__(self, name: str, client: object, promised: tuple[str, ...]) -> None:
        """Raises MissingError if one of the ``promised`` attributes is not there."""
        self._name, self._client = name, client
        if absent := [attribute for attribute in promised if not hasattr(client, attribute)]:
            raise broken(name, f"its client has no {', '.join(absent)}")

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(self._client, attribute)
        return self._guarded(attribute, found) if callable(found) else found

    def _guarded(self, method: str, act: Any) -> Any:
        def guarded_act(*arguments: Any, **named: Any) -> Any:
            with guarded(self._name, f"{method} failed"):
                answer = act(*arguments, **named)
            return self._each(method, answer) if isinstance(answer, Iterator) else answer

        return guarded_act

    def _each(self, method: str, answers: Iterator[Any]) -> Iterator[Any]:
        with guarded(self._name, f"{method} failed"):
            yield from answers


@cache
def _entries() -> Mapping[str, tuple[EntryPoint, ...]]:
    """Read once per process: a few milliseconds for hundreds of packages."""
    from importlib.metadata import entry_points

    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in entry_points(group=GROUP):
        if entry.name not in OURS:
            found[entry.name] = (*found.get(entry.name, ()), entry)
    return found


def _package(entry: EntryPoint) -> str:
    return f"the package {entry.dist.name} {entry.dist.version}" if entry.dist else f"the package of {entry.value}"


def _place(traceback: TracebackType | None) -> str:
    """Where it was raised, for the package's authors."""
    while traceback and traceback.tb_next:
        traceback = traceback.tb_next
    code = traceback.tb_frame.f_code if traceback else None
    return f" ({Path(*Path(code.co_filename).parts[-2:])}, line {traceback.tb_lineno})" if traceback and code else ""
