"""What the service says, as text that may be shown: it comes from outside and may hold anything."""

from __future__ import annotations

_LONGEST = 2000
"""A reason has at most 1,024 characters; messages of errors are not limited."""


def said(text: str) -> str:
    """On one line, without control characters."""
    lines = (_visible(line) for line in text.splitlines())
    line = " | ".join(line for line in lines if line)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


def _visible(line: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in line).split())
