"""The kinds of values a job file has. Each is an annotation that checks, converts and describes itself for JSON Schema.

    nodes: Annotated[int, Whole(least=1)] = 1

A value comes from Python (then it must have the right type) or from a file (then an unquoted scalar is ``Plain``: its
text as written, and the field it lands in decides what the text means; so ``torch: 2.10`` stays "2.10").
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar, cast, get_args

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, InitErrorDetails, core_schema

from cloudtrain import plugins
from cloudtrain.errors import did_you_mean
from cloudtrain.spec.flaws import all_flaws, checked, flaw, kind, wrong

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Provider: TypeAlias = Literal["sagemaker", "vertex", "azureml", "local"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)
CLOUDS = tuple(name for name in PROVIDERS if name != "local")

PerProvider: TypeAlias = T | Mapping[Provider, T]  # one value for all, or one for each that is named


def providers_for(keys: Iterable[object]) -> tuple[Provider, ...]:
    """Ours; where a key is none of them, those of other packages, too."""
    if all(key in PROVIDERS for key in keys):
        return PROVIDERS
    return (*PROVIDERS, *cast("tuple[Provider, ...]", plugins.names()))


def for_provider(value: PerProvider[T] | None, provider: Provider) -> T | None:
    """The value meant for one provider; None where the job says nothing for it."""
    return value.get(provider) if isinstance(value, Mapping) else value


def is_local(uri: str) -> bool:
    """True for a path of this machine, as such or as file://."""
    return "://" not in uri.removeprefix("file://")


class Plain(str):
    """An unquoted scalar of a job file: its text as written."""

    __slots__ = ()


def absent(value: object) -> bool:
    """Not given: None, or in a file nothing, ``~`` or ``null`` where something could stand."""
    return value is None or (isinstance(value, Plain) and value in {"", "~", "null", "Null", "NULL"})


SWITCHES = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}  # YAML 1.2


class Kind(Protocol[T_co]):
    """A kind of value: a check and its JSON Schema."""

    def check(self, value: object) -> T_co:
        """The converted value. Raises what ``flaws`` makes."""

    def schema(self) -> dict[str, Any]:
        """JSON Schema of what may be written."""


class Annotation:
    """Makes a Kind usable as ``Annotated[type, Kind()]`` in a pydantic model.

    The kinds are plain classes: Python takes 0.3 ms to make a frozen dataclass, in every command.
    """

    def check(self, value: object) -> object:
        raise NotImplementedError

    def schema(self) -> dict[str, Any]:
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return self.schema()


class Text(Annotation):
    """Text. ``pattern`` must match all of it; ``must`` is the sentence for text that does not.

    ``as_written``: any scalar of a file is taken by its text, ``null`` and ``true`` too. ``hidden``: text that does not
    match is not shown, since it might be a secret.
    """

    def __init__(self, pattern: str = "", must: str = "", as_written: bool = False, hidden: bool = False) -> None:
        self.pattern, self.must, self.as_written, self.hidden = pattern, must, as_written, hidden

    def check(self, value: object) -> str:
        if self.as_written and isinstance(value, Plain) and not value:
            raise wrong("is empty; write '' if empty text is meant")
        if absent(value) and not self.as_written:
            raise wrong("is empty; give it a value or leave it out")
        if not isinstance(value, str):
            raise wrong(f"must be text, not {kind(value)}")
        refuse_unusable(value)
        if self.pattern and not re.fullmatch(self.pattern, value):
            raise wrong(self.must if self.hidden else f"{self.must}, not {kind(value)}")
        return str(value)

    def schema(self) -> dict[str, Any]:
        kinds: dict[str, Any] = {"type": ["string", "number", "boolean"] if self.as_written else "string"}
        return kinds | ({"pattern": f"^(?:{self.pattern})$"} if self.pattern else {})


class Whole(Annotation):
    """A whole number from ``least`` to ``most``."""

    def __init__(self, least: int, most: int = 1_000_000) -> None:
        self.least, self.most = least, most

    def check(self, value: object) -> int:
        number = self._number(value)
        if number is None or not self.least <= number <= self.most:
            most = f" and at most {self.most}" if number is not None and number > self.most else ""
            raise wrong(f"must be a whole number of at least {self.least}{most}, not {_or_quoted(value)}")
        return number

    def _number(self, value: object) -> int | None:
        if isinstance(value, Plain):
            return int(value) if re.fullmatch(r"[+-]?[0-9]{1,18}", value) else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


class Positive(Annotation):
    """A finite number above 0."""

    def check(self, value: object) -> float:
        number = self._number(value)
        if not (0 < number < math.inf):
            raise wrong(f"must be a number above 0, not {_or_quoted(value)}")
        return number

    def _number(self, value: object) -> float:
        if isinstance(value, Plain) and re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", value):
            return float(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300:
            return float(value)
        return math.nan

    def schema(self) -> dict[str, Any]:
        return {"type": "number", "exclusiveMinimum": 0}


class Switch(Annotation):
    """true or false; a file may also say yes, no, on, off."""

    def check(self, value: object) -> bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, Plain) and value.lower() in {"true", "yes", "on", "false", "no", "off"}:
            return value.lower() in {"true", "yes", "on"}
        raise wrong(f"must be true or false, not {_or_quoted(value)}")

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


class Choice(Annotation):
    """One of a few words."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words

    def check(self, value: object) -> str:
        if isinstance(value, str) and value in self.words:
            return str(value)
        near = did_you_mean(value, self.words) if isinstance(value, str) else ""
        raise wrong(f"must be one of {', '.join(self.words)}; {kind(value)} is not{near}")

    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.words)}


class ByProvider(Annotation, Generic[T]):
    """One value for every provider, or a mapping with one for each that is named.

    ``of_local``: what a mapping may hold for ``local`` where that differs from the clouds.
    """

    def __init__(self, of: Kind[T], of_local: Kind[T] | None = None) -> None:
        self.of, self.of_local = of, of_local

    def check(self, value: object) -> PerProvider[T]:
        if not isinstance(value, Mapping):
            if absent(value) or isinstance(value, (list, tuple)):
                raise wrong(f"must be one value, or a mapping with the keys {', '.join(PROVIDERS)}, not {kind(value)}")
            return self.of.check(value)
        found: list[InitErrorDetails] = [] if value else [flaw((), f"is empty; give {', '.join(PROVIDERS)} a value")]
        names = providers_for(value)
        found += unknown_keys(value, names, "provider")
        made = {name: checked(self._kind(name).check, value[name], found, (name,)) for name in names if name in value}
        if found:
            raise all_flaws(found)
        return {name: item for name, item in made.items() if item is not None}

    def _kind(self, provider: Provider) -> Kind[T]:
        return self.of_local if provider == "local" and self.of_local else self.of

    def schema(self) -> dict[str, Any]:
        each = {name: self._kind(name).schema() for name in PROVIDERS}
        mapping = {"type": "object", "properties": each, "additionalProperties": False, "minProperties": 1}
        return {"anyOf": [self.of.schema(), mapping]}


class Named:
    """A mapping from names to anything; ``pattern`` and ``must`` judge a name as in ``Text``.

    ``what`` is such as "a channel name"; ``folded``: names that differ only in case are the same name.
    """

    def __init__(self, what: str, pattern: str, must: str, folded: bool = False) -> None:
        self.what, self.pattern, self.must, self.folded = what, pattern, must, folded

    def refused(self, name: str) -> str | None:  # noqa: ARG002 - for kinds that know more
        """Why a well-formed name is not allowed; None if it is."""
        return None

    def names(self) -> dict[str, Any]:
        """JSON Schema of a name."""
        return {"pattern": f"^(?:{self.pattern})$"}

    def check(self, value: object, handler: core_schema.ValidatorFunctionWrapHandler) -> object:
        if not isinstance(value, Mapping):
            raise wrong(f"must be a mapping from {self.what} to its value, not {kind(value)}")
        found = list(self._flaws(value))
        made = checked(handler, dict(value), found)
        if found:
            raise all_flaws(found)
        return made

    def _flaws(self, names: Mapping[object, object]) -> Iterator[InitErrorDetails]:
        seen: dict[str, str] = {}
        for name in names:
            if not isinstance(name, str) or not re.fullmatch(self.pattern, name):
                yield flaw((str(name),), self.must, at_key=True)
            elif reason := self.refused(name):
                yield flaw((name,), reason, at_key=True)
            elif self.folded and name.upper() in seen:
                first = seen[name.upper()]
                clash = f"differs from {first!r} only in case; both would be {name.upper()} in the environment"
                yield flaw((name,), clash, at_key=True)
            else:
                seen[name.upper()] = name

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return handler(schema) | {"propertyNames": self.names()}


def unknown_keys(given: Mapping[Any, object], known: tuple[str, ...], what: str = "key") -> Iterator[InitErrorDetails]:
    """A flaw for every key that is not known, with the nearest one or else all of them."""
    for key in given:
        if key not in known:
            near = did_you_mean(str(key), known) or f"; known here: {', '.join(known)}"
            yield flaw((str(key),), f"unknown {what}{near}", at_key=True)


def refuse_unusable(text: str) -> None:
    """Text with a NUL cannot be put into argv or the environment; a lone surrogate cannot be written as UTF-8."""
    if "\0" in text:
        raise wrong("must not hold a NUL character: no program can be given one")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise wrong("must not hold half a surrogate pair: it is not a character")


def _or_quoted(value: object) -> str:
    """Quotes turn a number or a switch into text: say so where that is all that is wrong."""
    quoted = isinstance(value, str) and not isinstance(value, Plain)
    return f"the text {kind(value)}" if quoted else kind(value)
