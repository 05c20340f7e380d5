"""One start of a job's containers, from their first moment until the last of them has ended."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from cloudtrain.emulator.faults import JobFaults
    from cloudtrain.emulator.nodes import Nodes

Why = Literal["exited", "stop", "runtime", "wait", "preempted", "gone", "lost", "closed"]
"""exited: by themselves. stop, runtime, wait: told to, by a user or a limit. preempted: told to, and the machines go.
gone: the machines went without a word. lost: one of them did. closed: the emulator ends."""

_TICK_SECONDS = 0.1
_PEERS_SECONDS = 30.0
"""For the other nodes, when one has failed or is lost: they are to notice, and to end by themselves. What the service
does with them is not known."""


class Ended(NamedTuple):
    """How a start has ended."""

    why: Why
    failed: tuple[int, int] | None
    """The node that failed first, and its exit code; 128 + n for a signal."""


class Watch:
    """Watches the nodes, and does to them what is asked."""

    def __init__(
        self,
        nodes: Nodes,
        number: int,
        *,
        asked: Callable[[], Why | None],
        work: Callable[[], object],
        grace: float,
        faults: JobFaults,
        start: int,
    ) -> None:
        """``number`` of nodes. ``asked``: whether they are to end, and why. ``work``: what else there is to do, called
        again and again. ``grace``: real seconds from SIGTERM to SIGKILL. ``start``: the job's how many-th, from 0."""
        self._nodes = nodes
        self._number = number
        self._asked = asked
        self._work = work
        self._grace = grace
        self._preemption = faults.preempt[start] if start < len(faults.preempt) else None
        self._losses = [loss for loss in faults.lose if loss.node < number] if start == 0 else []
        self._began = time.monotonic()
        self._why: Why = "exited"
        self._failed: tuple[int, int] | None = None
        self._kill_at: float | None = None

    def run(self) -> Ended:
        """Until all have ended."""
        while not self._nodes.wait(_TICK_SECONDS):
            self._work()
            self._note_failure()
            self._obey()
            if self._kill_at is not None and time.monotonic() > self._kill_at:
                self._nodes.kill()
        self._note_failure()
        return Ended(self._why, self._failed)

    def _note_failure(self) -> None:
        if self._failed is None:
            failed = {node: status for node, status in sorted(self._nodes.poll().items()) if status}
            for node, status in failed.items():
                self._failed = (node, status if status > 0 else 128 - status)
                self._kill_later(_PEERS_SECONDS)
                return

    def _obey(self) -> None:
        """What is asked, and what the fault file wants; what came first decides."""
        if (asked := self._asked()) == "closed":
            self._why = asked
            self._nodes.kill()
        if self._why != "exited" or self._failed:
            return
        since = time.monotonic() - self._began
        if asked:
            self._end(asked)
        elif self._preemption and since >= self._preemption.at:
            self._preemption.happens()
            self._end("preempted" if self._preemption.notice else "gone")
        elif self._losses and since >= self._losses[0].at:
            self._losses[0].happens()
            self._why = "lost"
            self._nodes.signal(signal.SIGKILL, self._losses[0].node)
            self._kill_later(_PEERS_SECONDS)

    def _end(self, why: Why) -> None:
        self._why = why
        if why == "gone":
            self._nodes.kill()
        else:
            self._nodes.signal(signal.SIGTERM)
            self._kill_later(self._grace)

    def _kill_later(self, seconds: float) -> None:
        at = time.monotonic() + seconds
        self._kill_at = at if self._kill_at is None else min(self._kill_at, at)
