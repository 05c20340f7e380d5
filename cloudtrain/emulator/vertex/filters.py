"""The filter language of Google's list calls (AIP-160; Cloud Logging's is nearly the same), as far as clients use it.

``resource.type="ml_job" AND (a>"1" OR NOT b:c)``: comparisons of fields, AND, OR, NOT, ``-``, parentheses. OR binds
more tightly than AND, and AND may be left out. Not here: a value with no field (search in all of them), functions,
and lists of values.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, Protocol

from cloudtrain.emulator.vertex.errors import ServiceError

Lookup = Callable[[tuple[str, ...]], Any]
"""The value of a field by its path; None if there is none."""

SEVERITIES = ("DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY")

_TOKENS = re.compile(
    r"""\s*(?:
        (?P<op>!=|<=|>=|=~|!~|[=<>:])
      | (?P<paren>[()])
      | "(?P<quoted>(?:[^"\\]|\\.)*)"
      | (?P<minus>-)(?=[\w"(])
      | (?P<dot>\.)
      | (?P<word>[^\s"()=<>:!~.]+(?:\.\d[^\s"()=<>:!~]*)?|\*)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip
_TIME = re.compile(r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)")


class Filter(Protocol):
    """A condition."""

    def matches(self, lookup: Lookup) -> bool:
        """Whether it holds for what the fields are."""

    def pinned(self, field: tuple[str, ...]) -> str | None:
        """The value that ``field`` must have in all that matches, if there is one."""

    def earliest(self, field: tuple[str, ...]) -> int | None:
        """No match has a time in ``field`` before this one (nanoseconds); None if that is not said."""


class Comparison(NamedTuple):
    """``field op value``."""

    field: tuple[str, ...]
    op: str
    value: str

    def matches(self, lookup: Lookup) -> bool:
        found = lookup(self.field)
        if self.op == ":":
            return _has(found, self.value)
        if found is None:
            return self.op in ("!=", "!~")
        if self.op in ("=~", "!~"):
            return bool(re.search(self.value, str(found))) == (self.op == "=~")
        return _ORDER[self.op](*_comparable(self.field, str(found), self.value))

    def pinned(self, field: tuple[str, ...]) -> str | None:
        return self.value if self.field == field and self.op == "=" else None

    def earliest(self, field: tuple[str, ...]) -> int | None:
        return nanoseconds(self.value) if self.field == field and self.op in ("=", ">", ">=") else None


class All(NamedTuple):
    """AND; of nothing it is always true."""

    parts: tuple[Filter, ...]

    def matches(self, lookup: Lookup) -> bool:
        return all(part.matches(lookup) for part in self.parts)

    def pinned(self, field: tuple[str, ...]) -> str | None:
        return next((value for part in self.parts if (value := part.pinned(field)) is not None), None)

    def earliest(self, field: tuple[str, ...]) -> int | None:
        return max((time for part in self.parts if (time := part.earliest(field)) is not None), default=None)


class Either(NamedTuple):
    """OR."""

    parts: tuple[Filter, ...]

    def matches(self, lookup: Lookup) -> bool:
        return any(part.matches(lookup) for part in self.parts)

    def pinned(self, field: tuple[str, ...]) -> str | None:
        values = {part.pinned(field) for part in self.parts}
        return values.pop() if len(values) == 1 else None

    def earliest(self, field: tuple[str, ...]) -> int | None:
        times = [part.earliest(field) for part in self.parts]
        return None if None in times else min(time for time in times if time is not None)


class Not(NamedTuple):
    """NOT."""

    part: Filter

    def matches(self, lookup: Lookup) -> bool:
        return not self.part.matches(lookup)

    def pinned(self, _field: tuple[str, ...]) -> str | None:
        return None

    def earliest(self, _field: tuple[str, ...]) -> int | None:
        return None


def parse(text: str) -> Filter:
    """Raises ServiceError for what this language, or this reader of it, has not."""
    return _Parser(text).whole()


def nanoseconds(text: str) -> int | None:
    """RFC 3339 as nanoseconds since the epoch; None for anything else."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    zone = found.group(3).upper().replace("Z", "+00:00")
    try:
        moment = datetime.fromisoformat(found.group(1).upper() + zone).astimezone(timezone.utc)
    except ValueError:
        return None
    fraction = (found.group(2) or ".0")[1:].ljust(9, "0")
    return round(moment.timestamp()) * 1_000_000_000 + int(fraction)


def _has(found: Any, value: str) -> bool:
    """``:`` is true for a part of a text, a pattern with ``*``, and with ``*`` alone for whatever is there."""
    if found is None:
        return False
    if value == "*":
        return True
    text, wanted = str(found).lower(), value.lower()
    return fnmatchcase(text, wanted.replace("[", "[[]")) if "*" in wanted else wanted in text


def _comparable(field: tuple[str, ...], found: str, value: str) -> tuple[Any, Any]:
    if field == ("severity",) and value.upper() in SEVERITIES and found in SEVERITIES:
        return SEVERITIES.index(found), SEVERITIES.index(value.upper())
    times = nanoseconds(found), nanoseconds(value)
    return times if None not in times else (found, value)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._read())
        self._at = 0

    def whole(self) -> Filter:
        found = self._and() if self._tokens else All(())
        if self._at < len(self._tokens):
            raise self._error()
        return found

    def _read(self) -> Iterator[tuple[str, str]]:
        place, end = 0, len(self._text.rstrip())
        while place < end:
            token = _TOKENS.match(self._text, place)
            if token is None:
                raise ServiceError("INVALID_ARGUMENT", f"Unparseable filter: syntax error at column {place + 1}")
            place = token.end()
            kind = token.lastgroup or ""
            word = token.group(kind)
            yield kind, re.sub(r"\\(.)", r"\1", word) if kind == "quoted" else word

    def _and(self) -> Filter:
        parts = [self._or()]
        while self._at < len(self._tokens) and self._peek() != ("paren", ")"):
            self._takes("word", "AND")
            parts.append(self._or())
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _or(self) -> Filter:
        parts = [self._single()]
        while self._takes("word", "OR"):
            parts.append(self._single())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _single(self) -> Filter:
        if self._takes("word", "NOT") or self._takes("minus", "-"):
            return Not(self._single())
        if self._takes("paren", "("):
            found = self._and()
            if not self._takes("paren", ")"):
                raise self._error()
            return found
        return self._comparison()

    def _comparison(self) -> Filter:
        field = [self._next("word", "quoted")]
        while self._takes("dot", "."):
            field.append(self._next("word", "quoted"))
        op = self._next("op")
        value = ("-" if self._takes("minus", "-") else "") + self._next("word", "quoted")
        while (mark := self._peek()[1]) in (".", ":"):  # a value without quotes may have dots, and a time has colons
            self._at += 1
            value += mark + self._next("word", "quoted")
        if op in ("=~", "!~"):
            self._refuse_pattern(value)
        return Comparison(tuple(field), op, value)

    def _refuse_pattern(self, value: str) -> None:
        try:
            re.compile(value)
        except re.error as error:
            raise ServiceError("INVALID_ARGUMENT", f"Unparseable filter: regular expression: {error}") from error

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("", "")

    def _takes(self, kind: str, word: str) -> bool:
        if self._peek() != (kind, word):
            return False
        self._at += 1
        return True

    def _next(self, *kinds: str) -> str:
        kind, word = self._peek()
        if kind not in kinds:
            raise self._error()
        self._at += 1
        return word

    def _error(self) -> ServiceError:
        word = self._peek()[1]
        where = f"at {word!r}" if word else "at its end"
        return ServiceError("INVALID_ARGUMENT", f"Unparseable filter: syntax error {where} in {self._text!r}")
