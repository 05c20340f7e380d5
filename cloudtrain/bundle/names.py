"""Names of files: which of them can ship, and how to show any of them."""

from __future__ import annotations

import unicodedata


def bad_name(name: str) -> str | None:
    """Names that some machine on the way could not keep as they are. Quotes, blanks, ``$`` and the like are fine."""
    if any(unicodedata.category(letter) == "Cs" for letter in name):
        return "has a name that is not UTF-8"
    if any(unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in name):
        return "has a control character in its name"
    return "has a backslash in its name" if "\\" in name else None


def printable(path: str) -> str:
    """A path as it can be shown on any terminal: control characters and bytes that are not UTF-8 as escapes."""
    escaped = path.encode("utf-8", "backslashreplace").decode()
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in escaped) or "."
