"""Free-form data for ``overrides``: what JSON can hold, scalars of a file typed by YAML 1.2's core schema."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic_core import InitErrorDetails, PydanticCustomError

from cloudtrain.spec.fields import SWITCHES, Annotation, Plain, absent, refuse_unusable
from cloudtrain.spec.flaws import all_flaws, checked, flaw, kind, wrong

_DEEPEST = 64

# As text, here and in the modules beside: re compiles, and keeps, what a job makes it look for.
_WHOLE = r"[-+]?[0-9]{1,300}|0o[0-7]{1,300}|0x[0-9a-fA-F]{1,300}"
_DECIMAL = r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
_NO_NUMBER = r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"


class Native(Annotation):
    """A mapping of native fields, as deep as the service wants it."""

    def check(self, value: object) -> dict[str, object]:
        if not isinstance(value, Mapping):
            raise wrong(f"must be a mapping of native fields, not {kind(value)}")
        return _mapping(value, 0)

    def schema(self) -> dict[str, Any]:
        return {"type": "object"}


def core_value(text: str) -> object:
    """What an unquoted YAML scalar means in the core schema: null, a switch, a number, else text.

    Raises pydantic's error for infinities and for what is not a number.
    """
    if absent(Plain(text)):
        return None
    if text in SWITCHES:
        return SWITCHES[text]
    if re.fullmatch(_WHOLE, text):
        return int(text, 0) if text.startswith(("0o", "0x")) else int(text)
    if re.fullmatch(_NO_NUMBER, text) or (re.fullmatch(_DECIMAL, text) and math.isinf(float(text))):
        raise wrong(f"must be a finite number: {text} cannot be sent to a service")
    return float(text) if re.fullmatch(_DECIMAL, text) else str(text)


def is_text(text: str) -> bool:
    """Whether an unquoted scalar with this text means just the text."""
    if absent(Plain(text)) or text in SWITCHES:
        return False
    return not any(re.fullmatch(form, text) for form in (_WHOLE, _DECIMAL, _NO_NUMBER))


def _mapping(value: Mapping[Any, object], depth: int) -> dict[str, object]:
    found: list[InitErrorDetails] = []
    for key in value:
        if not isinstance(key, str):
            found.append(flaw((str(key),), f"a key must be text, not {kind(key)}", at_key=True))
            continue
        try:
            refuse_unusable(key)
        except PydanticCustomError as error:
            found.append(flaw((key,), error.message(), at_key=True))
    deeper = partial(_any, depth=depth + 1)
    made = {str(key): checked(deeper, item, found, (str(key),)) for key, item in value.items()}
    if found:
        raise all_flaws(found)
    return made


def _list(value: list[object] | tuple[object, ...], depth: int) -> list[object]:
    found: list[InitErrorDetails] = []
    deeper = partial(_any, depth=depth + 1)
    made = [checked(deeper, item, found, (index,)) for index, item in enumerate(value)]
    if found:
        raise all_flaws(found)
    return made


def _any(value: object, depth: int) -> object:
    if depth > _DEEPEST:
        raise wrong(f"is nested more than {_DEEPEST} levels deep")
    if isinstance(value, Mapping):
        return _mapping(value, depth)
    if isinstance(value, (list, tuple)):
        return _list(value, depth)
    if isinstance(value, str):
        refuse_unusable(value)
        return core_value(value) if isinstance(value, Plain) else str(value)
    if value is None or isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise wrong(f"must be what JSON can hold, not {kind(value)}")
