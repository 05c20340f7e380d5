"""When the service starts a job again by itself: its page on how it handles errors, restated.

A replica that fails as scripts do ends the job. After exit codes that may be transient (SIGABRT, SIGSEGV), a stock-out
or a loss of machines the whole job is tried again, up to three times; up to six times on Spot VMs. After codes that it
does not know as a script's failure, replicas are restarted where they are, up to five times, and then the job again.
The emulator restarts all replicas together, whatever ``restartJobOnWorkerRestart`` says: one that waits for a peer
which has gone would not get further in either case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from cloudtrain.providers.reading import at
from cloudtrain.providers.vertex.reading import named
from cloudtrain.providers.vertex.rules.scheduling import STRATEGIES

Again = Literal["in-place", "job", ""]
"""Containers anew on the same machines; new machines; not at all."""

JOB_RETRIES, SPOT_RETRIES, IN_PLACE = 3, 6, 5

_MAY_BE_TRANSIENT = (6, 11, 134, 139)
_OUT_OF_MEMORY = 137
_NOT_STARTED = 124
"""Of ``timeout``, and of launch.py for a cluster that did not come together: no code of a script."""


class Fate(NamedTuple):
    """How a start of a job ended, if not with its success or at somebody's wish."""

    kind: Literal["exited", "preempted", "lost"]
    replica: int
    """The one it began with."""
    status: int = 0
    """What it exited with; 128 + n for signal n, as for a container."""


class Restarts:
    """What is left of a job's restarts."""

    def __init__(self, native: Mapping[str, Any]) -> None:
        spot = named(native, STRATEGIES, "jobSpec", "scheduling", "strategy") == "SPOT"
        never = at(native, "jobSpec", "scheduling", "disableRetries") is True
        self._retries = 0 if never else SPOT_RETRIES if spot else JOB_RETRIES
        self._most_in_place = 0 if never else IN_PLACE
        self._in_place = self._most_in_place

    def after(self, fate: Fate) -> Again:
        """What the service does now."""
        if fate.kind == "exited" and _is_permanent(fate.status):
            return ""
        if fate.kind == "exited" and fate.status not in _MAY_BE_TRANSIENT and self._in_place:
            self._in_place -= 1
            return "in-place"
        if not self._retries:
            return ""
        self._retries -= 1
        self._in_place = self._most_in_place
        return "job"


def _is_permanent(status: int) -> bool:
    """A script's own failure, by what launch.py and shells exit with, or memory that ran out."""
    own = status < 128 and status not in (*_MAY_BE_TRANSIENT, _NOT_STARTED)
    return own or status == _OUT_OF_MEMORY
