"""Lists that come in pages, each with the token of the next: a service that is broken gives tokens without end."""

from __future__ import annotations

from cloudtrain.errors import UnreachableError
from cloudtrain.spec.problems import shown

MOST_PAGES = 10_000
"""Of one list: ten million entries."""


class Tokens:
    """The tokens of one list."""

    def __init__(self, what: str) -> None:
        """``what`` goes on from "cannot": ``list the jobs of a workspace``."""
        self._what = what
        self._seen: set[str] = set()

    def next(self, token: str) -> str:
        """``token``, "" at the end. Raises UnreachableError for one that has been there, or one too many."""
        if not token:
            return ""
        if token in self._seen:
            raise self._endless(f"the page behind {shown(token)} came before")
        if len(self._seen) == MOST_PAGES:
            raise self._endless(f"{MOST_PAGES:,} pages have come, and there are more")
        self._seen.add(token)
        return token

    def _endless(self, why: str) -> UnreachableError:
        return UnreachableError(f"cannot {self._what}: the service's list has no end: {why}", hint="try again later")
