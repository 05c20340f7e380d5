"""States of a run, the same on every provider."""

from __future__ import annotations

from enum import Enum


class State(str, Enum):
    """Where a run stands. The value is the name, as shown and stored."""

    PENDING = "PENDING"
    PROVISIONING = "PROVISIONING"
    RUNNING = "RUNNING"
    RESTARTING = "RESTARTING"
    STOPPING = "STOPPING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"
    PREEMPTED = "PREEMPTED"
    TIMED_OUT = "TIMED_OUT"
    UNKNOWN = "UNKNOWN"

    @property
    def is_final(self) -> bool:
        """Whether a run in this state is over."""
        return self in _EXIT_CODES

    @property
    def exit_code(self) -> int:
        """What the command line exits with for a run that ended so."""
        return _EXIT_CODES[self]

    def __str__(self) -> str:
        return self.value


_EXIT_CODES = {
    State.SUCCEEDED: 0,
    State.FAILED: 1,
    State.TIMED_OUT: 1,
    State.STOPPED: 130,
    State.PREEMPTED: 143,
}
