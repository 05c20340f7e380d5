"""Regular expressions of the service model, which are Java's, as Python's.

They mean the same but for a few: ``\\d`` and ``\\w`` are ASCII in Java, ``.`` matches no line end of any kind, and
``\\p{...}`` names classes that Python's ``re`` has no name for.
"""

from __future__ import annotations

import re
from functools import cache

_TOKEN = re.compile(r"\\[pP]\{\w+\}|\\.|[\s\S]")
_NOT_LINE_END = r"[^\n\r\x85\u2028\u2029]"
_BLANKS = r" \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"  # \p{Z}: all separators there are
_NAMED = {r"\p{Alnum}": "A-Za-z0-9", r"\p{Alpha}": "A-Za-z", r"\p{Digit}": "0-9", r"\p{Z}": _BLANKS}
_ASCII = {r"\d": "0-9", r"\w": "A-Za-z0-9_"}


@cache
def python_pattern(java: str) -> re.Pattern[str] | None:
    """The pattern, to be matched against a whole text; None where it holds something that cannot be said here."""
    parts: list[str] = []
    inside = False
    for match in _TOKEN.finditer(java):
        part = _translated(match.group(), inside, java)
        if part is None:
            return None
        parts.append(part)
        inside = match.group() == "[" or (inside and match.group() != "]")
    try:
        return re.compile("".join(parts))
    except re.error:
        return None


def _translated(token: str, inside: bool, java: str) -> str | None:
    """One token; ``inside`` a class of characters."""
    if token in (r"\p{L}", r"\p{N}"):
        # Python's \w is letters, digits and _: exact where the class holds _ anyway, as the only ones with \p{L} do.
        return r"\w" if inside and "_" in java else None
    ascii_class = _ASCII.get(token) or _NAMED.get(token)
    if ascii_class:
        return ascii_class if inside else f"[{ascii_class}]"
    if token.lower().startswith(r"\p"):
        return None
    return _NOT_LINE_END if token == "." and not inside else token
