"""How often a job is started, by the numbers of Google's page on how the service handles errors."""

from __future__ import annotations

from typing import Any

import pytest

from cloudtrain.emulator.vertex.restarts import Fate, Restarts
from tests.emulator.vertex.requests import custom_job

STANDARD: dict[str, Any] = {}
SPOT = {"strategy": "SPOT"}
NEVER = {"disableRetries": True}

STARTS = [
    # a script's own failure, and memory that ran out
    (STANDARD, Fate("exited", 0, 1), 1),
    (STANDARD, Fate("exited", 0, 2), 1),
    (SPOT, Fate("exited", 0, 1), 1),
    (STANDARD, Fate("exited", 0, 137), 1),
    # SIGABRT and SIGSEGV: the job up to three times more
    *((STANDARD, Fate("exited", 0, status), 1 + 3) for status in (6, 11, 134, 139)),
    # no common error: each worker up to five times more, and then the job, up to three times
    (STANDARD, Fate("exited", 0, 143), (1 + 5) * (1 + 3)),
    (STANDARD, Fate("exited", 0, 124), (1 + 5) * (1 + 3)),
    (STANDARD, Fate("lost", 1), 1 + 3),
    (STANDARD, Fate("preempted", 0), 1 + 3),
    (SPOT, Fate("preempted", 0), 1 + 6),
    *((NEVER, Fate("exited", 0, status), 1) for status in (1, 134, 143)),
    ({**SPOT, **NEVER}, Fate("preempted", 0), 1),
]


@pytest.mark.parametrize(("scheduling", "fate", "starts"), STARTS)
def test_starts_of_a_job_that_always_ends_so(scheduling: dict[str, Any], fate: Fate, starts: int) -> None:
    restarts = Restarts(custom_job(**scheduling))
    count = 1
    while restarts.after(fate):
        count += 1
    assert count == starts
