"""Text from outside, of a service or a script, as a terminal may show it."""

from __future__ import annotations


def printable(text: str) -> str:
    """Without what a terminal would obey: control characters become escapes. A tab stays."""
    return "".join(c if c.isprintable() or c in "\t" else repr(c)[1:-1] for c in text)


def one_line(text: str, most: int) -> str:
    """The same on a single line of at most ``most`` characters, and three dots where it was longer."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= most else f"{line[:most]}..."
