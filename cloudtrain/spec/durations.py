"""Durations: ``90s 10m 6h 2d``."""

from __future__ import annotations

import re
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from cloudtrain.spec.flaws import kind, wrong

_PATTERN = r"0*[1-9][0-9]{0,8}[smhd]"
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Duration(str):
    """A duration as it was written; equal to another if written the same."""

    __slots__ = ()

    @property
    def seconds(self) -> int:
        """The whole duration in seconds."""
        return int(self[:-1]) * _SECONDS[self[-1]]

    @classmethod
    def check(cls, value: object) -> Duration:
        """The duration meant by a text such as ``10m``."""
        if isinstance(value, str) and re.fullmatch(_PATTERN, value):
            return cls(str(value))
        raise wrong(f"must be a duration such as 90s, 10m, 6h or 2d, not {kind(value)}{_hint(value)}")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(cls.check)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{_PATTERN}$"}


def _hint(value: object) -> str:
    """A bare number has no unit: show it with one."""
    text = str(value)
    return f" (write {text}s if seconds are meant)" if re.fullmatch(r"[1-9][0-9]{0,8}", text) else ""
