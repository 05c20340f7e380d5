"""Names of files: which of them can ship, and how to show any of them."""

from __future__ import annotations


def bad_name(name: str) -> str | None:
    """Names that some machine on the way could not keep as they are. Quotes, blanks, ``$`` and the like are fine."""
    if not name.isprintable() and (problem := _unprintable(name)):
        return problem
    return "has a backslash in its name" if "\\" in name else None


def _unprintable(name: str) -> str | None:
    import unicodedata  # for odd names only

    kinds = {unicodedata.category(letter) for letter in name}
    if "Cs" in kinds:
        return "has a name that is not UTF-8"
    return "has a control character in its name" if kinds & {"Cc", "Zl", "Zp"} else None


def printable(path: str) -> str:
    """A path as it can be shown on any terminal: control characters and bytes that are not UTF-8 as escapes."""
    escaped = path.encode("utf-8", "backslashreplace").decode()
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in escaped) or "."
