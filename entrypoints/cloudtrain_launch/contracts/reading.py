"""Reads variables and JSON files of a contract; each error names what is missing or wrong."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from cloudtrain_launch.errors import LaunchError


def need(env: Mapping[str, str], name: str) -> str:
    """The variable's value; LaunchError if it is not set or empty."""
    value = env.get(name)
    if not value:
        raise LaunchError(f"{name} is not set")
    return value


def number(env: Mapping[str, str], name: str) -> int:
    """The variable as a whole number."""
    return whole(need(env, name), name)


def whole(text: str, where: str) -> int:
    """``text`` as a whole number; ``where`` it was found is for the error."""
    try:
        return int(text)
    except ValueError:  # thousands of digits are one, too
        raise LaunchError(f"{where} is not a whole number: {text[:80]!r}") from None


def port(env: Mapping[str, str], name: str) -> int:
    """The variable as a port."""
    return as_port(number(env, name), name)


def as_port(value: int, where: str) -> int:
    """``value``, if it is a port."""
    if not 1 <= value <= 65535:
        raise LaunchError(f"{where} is {value}, a port is from 1 to 65535")
    return value


def addresses(env: Mapping[str, str], name: str) -> dict[str, str]:
    """``algo-1=127.0.0.1,algo-2=127.0.0.2`` as a mapping; empty if the variable is not set."""
    found = {}
    for pair in filter(None, env.get(name, "").split(",")):
        host, _, address = pair.partition("=")
        if not host or not address:
            raise LaunchError(f"{name} is {env[name]!r}; it is a list of name=address with commas between")
        found[host] = address
    return found


def json_object(text: str, where: str) -> dict[str, Any]:
    """The JSON object that ``text`` is; ``where`` it was found is for the error."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LaunchError(f"{where} is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise LaunchError(f"{where} is a JSON {type(data).__name__}, not an object")
    try:
        for part in _texts(data):
            if "\0" in part:
                raise ValueError("a NUL byte")
            os.fsencode(part)
    except (ValueError, RecursionError) as error:
        raise LaunchError(f"{where} holds what no variable or path can: {error}") from error
    return data


def _texts(value: object) -> Iterator[str]:
    """Every text in it, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, dict):
        yield from _texts([*value, *value.values()])


def json_file(path: str) -> dict[str, Any]:
    """The JSON object in a file."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeError) as error:
        raise LaunchError(f"cannot read {path}: {error}") from error
    return json_object(text, path)


def list_of_names(value: object, where: str) -> tuple[str, ...]:
    """``value`` as names, each there once."""
    if not isinstance(value, list) or not value or not all(isinstance(name, str) and name for name in value):
        raise LaunchError(f"{where} must be a list of names with at least one, not {value!r}")
    twice = sorted({name for name in value if value.count(name) > 1})
    if twice:
        raise LaunchError(f"{where} names {', '.join(twice)} twice")
    return tuple(value)
