"""The arguments of the training script: what may be written, the argv it becomes, the folders it may refer to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from pydantic_core import InitErrorDetails

from cloudtrain.errors import did_you_mean
from cloudtrain.spec.fields import SWITCHES, Annotation, Plain, absent, refuse_unusable
from cloudtrain.spec.flaws import all_flaws, checked, flaw, kind, wrong
from cloudtrain.spec.problems import Path

ArgValue: TypeAlias = str | bool | tuple[str, ...] | None
Args: TypeAlias = Mapping[str, ArgValue] | tuple[str, ...]

# The two kinds of places that have names. ${checkpoint} ${model} ${output} have none and cannot be misspelt; any other
# text, $HOME and ${{x}} included, is the script's own and is left alone.
_REFERENCE = r"\$\{(data|outputs)(?:\.([^{}]*))?\}"


def argv_of(args: Args) -> list[str]:
    """``{epochs: 5, amp: true, sizes: [1, 2]}`` as ``--epochs 5 --amp --sizes 1 2``; a list as it is."""
    if not isinstance(args, Mapping):
        return list(args)
    return [word for name, value in args.items() for word in _words(f"--{name}", value)]


def _words(flag: str, value: ArgValue) -> list[str]:
    if value is None or value is False:
        return []
    if value is True:
        return [flag]
    return [flag, *([value] if isinstance(value, str) else value)]


class Arguments(Annotation):
    """A mapping from names to values, or a list of words. Scalars of a file keep their text."""

    def check(self, value: object) -> Args:
        found: list[InitErrorDetails] = []
        made = _mapping(value, found) if isinstance(value, Mapping) else _list(value, found)
        if found:
            raise all_flaws(found)
        return made

    def schema(self) -> dict[str, Any]:
        word = {"type": ["string", "number", "boolean"]}
        value = {"anyOf": [{"type": ["string", "number", "boolean", "null"]}, _list_of(word) | {"minItems": 1}]}
        names = {"pattern": "^[^-]"}
        return {"anyOf": [{"type": "object", "additionalProperties": value, "propertyNames": names}, _list_of(word)]}


def _list_of(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def _mapping(value: Mapping[Any, object], found: list[InitErrorDetails]) -> Args:
    for name in value:
        if problem := _bad_name(name):
            found.append(flaw((str(name),), problem, at_key=True))
    return {str(name): checked(_value, item, found, (str(name),)) for name, item in value.items()}


def _list(value: object, found: list[InitErrorDetails]) -> Args:
    if not isinstance(value, (list, tuple)):
        raise wrong(f"must be a mapping such as {{epochs: 5}}, or a list of words, not {kind(value)}")
    words = [checked(_word, item, found, (index,)) for index, item in enumerate(value)]
    return tuple(word for word in words if word is not None)


def _bad_name(name: object) -> str | None:
    if not isinstance(name, str):
        return f"a name must be text, not {kind(name)}"
    if not name or "\0" in name:
        return "a name must be text that can follow --"
    if name.startswith("-"):
        return f"the -- is put in front by cloudtrain, write {name.lstrip('-')!r}; or use a list for full control"
    try:
        refuse_unusable(name)
    except ValueError as error:
        return str(error)
    return None


def _value(value: object) -> ArgValue:
    if absent(value) or isinstance(value, bool):
        return None if absent(value) else bool(value)
    if isinstance(value, Plain) and value in SWITCHES:
        return SWITCHES[value]
    if not isinstance(value, (list, tuple)):
        return _word(value)
    if not value:
        raise wrong("is an empty list; write true for a bare flag, or leave it out")
    found: list[InitErrorDetails] = []
    made = _list(value, found)
    if found:
        raise all_flaws(found)
    return tuple(made)


def _word(value: object) -> str:
    """One element of argv."""
    if isinstance(value, str) and not (isinstance(value, Plain) and not value):
        refuse_unusable(value)
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int.__repr__(value)
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, bool):
        raise wrong(f"a list of words cannot hold a switch; write the text {str(value).lower()!r}")
    if absent(value):
        raise wrong("is empty; write '' if an empty argument is meant")
    raise wrong(f"must be text, a number, true, false or a list of these, not {kind(value)}")


def texts(given: object, under: Path) -> Iterator[tuple[Path, str]]:
    """Every text among unchecked arguments or variables, with its path."""
    items: Iterable[tuple[Any, object]] = ()
    if isinstance(given, Mapping):
        items = given.items()
    elif isinstance(given, (list, tuple)) and len(under) < 3:  # args, a name, a list: no deeper
        items = enumerate(given)
    elif isinstance(given, str):
        yield under, given
    for step, item in items:
        if not isinstance(item, Mapping):
            yield from texts(item, (*under, step))


def reference_flaws(path: Path, text: str, names: Mapping[str, Iterable[str]]) -> Iterator[InitErrorDetails]:
    """What ``${data.x}`` and ``${outputs.x}`` in a text name that is not declared; ``names``: data -> its channels."""
    for found in re.finditer(_REFERENCE, text):
        section, name = found.groups()
        known = sorted(names[section])
        if name not in known:
            yield flaw(path, f"{found.group()} names nothing in {section}:{_declared(section, name or '', known)}")


def _declared(section: str, name: str, known: list[str]) -> str:
    if not known:
        return f" no {section} are declared"
    return did_you_mean(name, known).removeprefix(",") or f" declared here: {', '.join(known)}"
