"""A request against botocore's own model of CreateTrainingJob, or of another call of the service.

botocore itself checks types, required and unknown fields and minima before it sends anything; maxima, patterns and
enumerations stand in its model, but are left to the service. Here all of them are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from cloudtrain.errors import did_you_mean
from cloudtrain.providers.base import NativeProblem
from cloudtrain.providers.sagemaker.patterns import python_pattern
from cloudtrain.providers.sagemaker.wording import long_key, too_little, too_much
from cloudtrain.providers.vendor import importing
from cloudtrain.spec.problems import Path, shown

Shape = Mapping[str, Any]

_REQUEST = "CreateTrainingJobRequest"
_LARGEST = {"integer": 2**31 - 1, "long": 2**63 - 1}
_FEW = 12
"""Names that are worth listing; of more only the nearest is told."""


def problems(native: Mapping[str, Any], shape: str = _REQUEST) -> Iterator[NativeProblem]:
    """What the model does not allow; ``shape`` is its name for the request. Raises ImportError without botocore."""
    yield from _checked(native, shape, ())


@cache
def shapes() -> Mapping[str, Shape]:
    """The shapes of the service, from botocore's own files alone (a user's ``~/.aws/models`` might say otherwise)."""
    with importing():
        from botocore.loaders import Loader

    loader = Loader(extra_search_paths=[Loader.BUILTIN_DATA_PATH], include_default_search_paths=False)
    model: dict[str, Any] = loader.load_service_model("sagemaker", "service-2")
    found: Mapping[str, Shape] = model["shapes"]
    return found


@cache
def version() -> str:
    """Of botocore."""
    import botocore

    return str(botocore.__version__)


def _checked(value: Any, name: str, path: Path) -> Iterator[NativeProblem]:
    shape = shapes()[name]
    if value is None:
        yield NativeProblem(path, "is null; leave it out")
        return
    types, what, check = _KINDS[shape["type"]]
    if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
        yield NativeProblem(path, f"must be {what}, not {shown(value)}")
        return
    yield from check(value, shape, path)


def _structure(value: Mapping[str, Any], shape: Shape, path: Path) -> Iterator[NativeProblem]:
    members = shape["members"]
    for name in shape.get("required", ()):
        if name not in value:
            yield NativeProblem((*path, name), "is missing")
    for name, item in value.items():
        if name in members:
            yield from _checked(item, members[name]["shape"], (*path, name))
        else:
            yield NativeProblem((*path, name), f"unknown field{_known(name, list(members))}", unknown=True)


def _list(value: list[Any], shape: Shape, path: Path) -> Iterator[NativeProblem]:
    yield from _sized(value, shape, path)
    for number, item in enumerate(value):
        yield from _checked(item, shape["member"]["shape"], (*path, number))


def _map(value: Mapping[str, Any], shape: Shape, path: Path) -> Iterator[NativeProblem]:
    yield from _sized(value, shape, path)
    keys = shapes()[shape["key"]["shape"]]
    for key, item in value.items():
        if len(key) > keys.get("max", len(key)):
            yield NativeProblem((*path, key), long_key(key, keys["max"]))
        elif not _matches(key, keys):
            yield NativeProblem((*path, key), f"the key must match {keys['pattern']}")
        yield from _checked(item, shape["value"]["shape"], (*path, key))


def _text(value: str, shape: Shape, path: Path) -> Iterator[NativeProblem]:
    found = list(_sized(value, shape, path))
    yield from found
    if "enum" in shape and value not in shape["enum"]:
        known = _known(value, shape["enum"])
        yield NativeProblem(path, f"{shown(value)} is none of the values that botocore {version()} knows{known}")
    elif not found and not _matches(value, shape):
        yield NativeProblem(path, f"{shown(value)} must match {shape['pattern']}")


def _number(value: int, shape: Shape, path: Path) -> Iterator[NativeProblem]:
    if value < shape.get("min", value):
        yield NativeProblem(path, f"{value}, at least {shape['min']}")
    most = shape.get("max", _LARGEST[shape["type"]])
    if value > most:
        yield NativeProblem(path, f"{shown(value)}, at most {most}")


def _switch(*_: Any) -> Iterator[NativeProblem]:
    """The type is all that can be wrong."""
    yield from ()


def _sized(value: Any, shape: Shape, path: Path) -> Iterator[NativeProblem]:
    if len(value) > shape.get("max", len(value)):
        yield NativeProblem(path, too_much(value, shape["max"]))
    if len(value) < shape.get("min", 0):
        yield NativeProblem(path, too_little(value, shape["min"]))


def _matches(text: str, shape: Shape) -> bool:
    pattern = python_pattern(shape["pattern"]) if "pattern" in shape else None
    return pattern is None or pattern.fullmatch(text) is not None


def _known(name: str, names: list[str]) -> str:
    near = did_you_mean(name, names)
    return near or (f"; known here: {', '.join(names)}" if len(names) <= _FEW else f"; {len(names)} are known")


_Check = Callable[[Any, Shape, Path], Iterator[NativeProblem]]
_KINDS: Mapping[str, tuple[type | tuple[type, ...], str, _Check]] = {
    "structure": (Mapping, "a mapping", _structure),
    "map": (Mapping, "a mapping", _map),
    "list": (list, "a list", _list),
    "string": (str, "text", _text),
    "integer": (int, "a whole number", _number),
    "long": (int, "a whole number", _number),
    "boolean": (bool, "true or false", _switch),
    "timestamp": ((int, float), "a time, in seconds since the epoch", _switch),
}
"""All kinds that occur below the requests about training jobs; times are in lists' filters alone."""
