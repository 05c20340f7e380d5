"""Bounds the start: all nodes connected, all workers started, all ranks in the process group, within ``start_timeout``.

A rank counts as started when it enters ``init_process_group``. A script that never does so cannot be told from one that
is slow, so it is left alone, unless every sign says that it hangs in an import.
"""

from __future__ import annotations

import contextlib
import re
import time

from cloudtrain_launch import processes
from cloudtrain_launch.worker import STACK_SIGNAL, WorkerConfig
from cloudtrain_launch.workers import Rank

_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)$')
_ANSWER_SECONDS = 1.0


class StartWatch:
    """Call ``late`` often; it returns what is wrong once the time is up."""

    def __init__(self, ranks: list[Rank], config: WorkerConfig, timeout: float) -> None:
        self._ranks = ranks
        self._config = config
        self._timeout = timeout
        self._went_at: float | None = None
        self._joining_at: float | None = None
        self._asked_at: float | None = None
        self._checked_imports = False
        self.started_at = time.monotonic()

    def went(self) -> None:
        """All nodes are here and the agents were told to start the workers."""
        self._went_at = time.monotonic()

    def someone_joins(self) -> None:
        """A rank, here or elsewhere, has entered ``init_process_group``."""
        if self._joining_at is None:
            self._joining_at = time.monotonic()

    def gathering_is_late(self, reserve: float = 0.0) -> bool:
        """True once nodes are missing for longer than the timeout and ``reserve``."""
        return self._went_at is None and time.monotonic() - self.started_at > self._timeout + reserve

    def late(self) -> tuple[Rank, str, str | None] | None:
        """A rank that did not start in time, what is wrong with it, and where it hangs (a stack), or None."""
        if self._asked_at is not None:
            return self._verdict() if time.monotonic() - self._asked_at > _ANSWER_SECONDS else None
        if self._is_due() and self._late_ranks():
            self._ask()
        return None

    def _is_due(self) -> bool:
        now = time.monotonic()
        if self._joining_at is not None:
            return now - self._joining_at > self._timeout
        return self._went_at is not None and not self._checked_imports and now - self._went_at > self._timeout

    def _late_ranks(self) -> list[Rank]:
        return [rank for rank in self._ranks if not rank.joining and rank.status is None]

    def _ask(self) -> None:
        self._asked_at = time.monotonic()
        for rank in self._late_ranks():
            if rank.script and STACK_SIGNAL is not None:
                processes.send(rank.script, STACK_SIGNAL)

    def _verdict(self) -> tuple[Rank, str, str | None] | None:
        self._asked_at = None
        self._checked_imports = True
        late = self._late_ranks()
        stacks = {rank.rank: self._stack(rank) for rank in late}
        # A rank that gives no answer has closed our descriptors; it may well have joined, and could not say so either.
        late = [rank for rank in late if rank.script is None or stacks[rank.rank] or STACK_SIGNAL is None]
        if self._joining_at is None:
            late = [rank for rank in late if rank.script is None or _is_importing(stacks[rank.rank])]
        if not late:
            return None
        first = late[0]
        who = "rank" if len(late) == 1 else "ranks"
        message = f"{who} {', '.join(str(r.rank) for r in late)} {self._what(first, stacks[first.rank])}"
        return first, message, stacks[first.rank] or None

    def _what(self, rank: Rank, stack: str) -> str:
        if rank.script is None:
            return f"did not start within {self._timeout:g} s"
        since = "the first rank did" if self._joining_at is not None else "the start"
        doing = "still importing" if _is_importing(stack) else "still running"
        return f"did not join the process group within {self._timeout:g} s of {since}; {doing} {_where(stack)}"

    def _stack(self, rank: Rank) -> str:
        with contextlib.suppress(OSError), open(self._config.stack_file(rank.local_rank), errors="replace") as file:
            return file.read()
        return ""


def _is_importing(stack: str) -> bool:
    return "importlib._bootstrap" in stack


def _where(stack: str) -> str:
    """``file.py:3``, the innermost line of the stack that is not Python's own import machinery."""
    for line in stack.splitlines():
        match = _FRAME.match(line)
        if match and not match["file"].startswith("<frozen"):
            return f"{match['file']}:{match['line']}"
    return "(it did not say where)"
