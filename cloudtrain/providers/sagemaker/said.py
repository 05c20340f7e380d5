"""What the service says, as text that may be shown: it comes from outside and may hold anything."""

from __future__ import annotations

from cloudtrain.wording import one_line

_LONGEST = 2000
"""A reason has at most 1,024 characters; messages of errors are not limited."""


def said(text: str) -> str:
    """On one line."""
    return one_line(" | ".join(line for line in text.splitlines() if line.strip()), _LONGEST)
