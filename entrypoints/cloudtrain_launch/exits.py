"""Exit codes of ``launch.py``: 0 done, 1..123 the code of the rank that failed first, 128 + n a signal."""

from __future__ import annotations

OK = 0
FAILED = 1
NOT_STARTED = 124
"""A node is missing, or the workers did not start in time (the code ``timeout`` uses)."""
LAUNCHER = 125
"""The launcher itself could not do its work: a broken spec, an environment it cannot read."""
INTERRUPTED = 130
PREEMPTED = 143
"""Stopped by SIGTERM; what was saved is in the checkpoint folder."""
NODE_LOST = PREEMPTED
"""Another node is gone, most likely with its machine. Not 1, which Vertex AI takes for the script's own failure: it
would end the job for good where it is to start all nodes again."""


def of_status(status: int) -> int:
    """Exit code of a process status as ``subprocess`` gives it: negative is a signal."""
    return status if status >= 0 else 128 - status


_STARTED_AGAIN = (NOT_STARTED, INTERRUPTED, PREEMPTED)
"""What is no fault of the job: another start may well succeed."""


def given_to(provider: str, code: int) -> int:
    """The code that this provider takes for what ``code`` means here.

    Vertex AI starts a container again, and then the whole job, after any code that it does not know as the job's own
    failure (facts: its pages on the training service); 1 it knows. How often a job that failed is repeated is
    ``retries.failure``, and not the service's to say.
    """
    return FAILED if provider == "vertex" and code and code not in _STARTED_AGAIN else code
