"""The command line of a task: its keyword parameters, as options."""

from __future__ import annotations

import argparse
import difflib
import inspect
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from cloudtrain_job.errors import TaskError

_SCALARS = {str: "TEXT", int: "N", float: "X", Path: "PATH"}


class Parser(argparse.ArgumentParser):
    """An argument parser that takes no abbreviations and names the option nearest to an unknown one."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse all of ``arguments``; exits with code 2 if one is not known."""
        values, unknown = self.parse_known_args(arguments)
        if unknown:
            self.refuse(unknown[0])
        return values

    def refuse(self, argument: str) -> NoReturn:
        """Exit with code 2 because ``argument`` is not known."""
        name = argument.split("=")[0]
        known = [option for action in self._actions for option in action.option_strings if option.startswith("--")]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]}?" if near else "; --help lists the options"
        self.error(f"unknown option {name}{hint}" if name.startswith("-") else f"unexpected argument {argument!r}")


def add_task_options(parser: Parser, task: type[Any]) -> list[str]:
    """Give ``parser`` one option per keyword parameter of ``task.__init__``; returns their names.

    Raises TaskError for a parameter without a type, of a type that text cannot become, or named like an option that
    every task has.
    """
    parameters = _parameters(task)
    group = parser.add_argument_group(f"options of {task.__name__}")
    taken = {action.dest for action in parser._actions}
    for name, (hint, parameter) in parameters.items():
        if name in taken:
            raise TaskError(f"{task.__name__}.__init__: the name {name} is taken by --{_dashed(name)} of every task")
        default = {"default": parameter.default} if parameter.default is not parameter.empty else {"required": True}
        text = f"default: {parameter.default}" if "default" in default else "required"
        spelt = dict.fromkeys((f"--{_dashed(name)}", f"--{name}"))
        group.add_argument(*spelt, dest=name, help=text, **default, **_kind(task, name, hint))
    return list(parameters)


def _parameters(task: type[Any]) -> Mapping[str, tuple[Any, inspect.Parameter]]:
    if task.__init__ is object.__init__:
        return {}
    found = dict(list(inspect.signature(task.__init__).parameters.items())[1:])
    hints = _hints(task)
    for name, parameter in found.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TaskError(f"{task.__name__}.__init__: {parameter} cannot be an option; name every option")
        if name not in hints:
            raise TaskError(f"{task.__name__}.__init__: {name} needs a type, such as {name}: float = 0.1")
    return {name: (hints[name], parameter) for name, parameter in found.items()}


def _hints(task: type[Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(task.__init__)
    except (NameError, TypeError) as error:  # `int | None` on Python 3.9 is a TypeError
        raise TaskError(f"{task.__name__}.__init__: a type cannot be understood here: {error}") from None


def _kind(task: type[Any], name: str, hint: Any) -> dict[str, Any]:
    hint = _not_none(hint)
    if hint is bool:
        return {"action": argparse.BooleanOptionalAction}
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in _SCALARS:
        return {"type": hint, "metavar": _SCALARS[hint]}
    if origin is typing.Literal and all(isinstance(choice, str) for choice in inner):
        return {"choices": inner}
    if origin is list and inner and inner[0] in _SCALARS:
        return {"type": inner[0], "nargs": "+", "metavar": _SCALARS[inner[0]]}
    raise TaskError(
        f"{task.__name__}.__init__: {name} is a {hint}; an option is a str, int, float, bool, Path, a Literal of "
        "strings, a list of one of the first, or Optional"
    )


def _not_none(hint: Any) -> Any:
    inner = [part for part in typing.get_args(hint) if part is not type(None)]
    return inner[0] if len(inner) == 1 and type(None) in typing.get_args(hint) else hint


def _dashed(name: str) -> str:
    return name.replace("_", "-")
