"""Signals to the process of a local run: asked once it stops the run in order, asked twice it kills it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudtrain.providers.local.follow import Follower


class Stopper:
    """Turns SIGINT and SIGTERM into requests to stop. Before the run has started, and the third time, they end the
    command at once."""

    def __init__(self) -> None:
        self._follower: Follower | None = None

    def follow(self, follower: Follower) -> None:
        self._follower = follower

    def __call__(self, number: int, _: FrameType | None) -> None:
        if self._follower is None:
            raise Stopped(128 + number)
        if self._follower.request_stop(signal.Signals(number).name) > 2:
            os._exit(128 + number)  # the host process sees that we are gone, and ends what is left


class Stopped(SystemExit):
    """Stopped before anything ran."""


@contextmanager
def stoppable() -> Iterator[Stopper]:
    """While this lasts, signals go to the stopper; its ``follow`` is for ``run_local`` to call."""
    stopper = Stopper()
    before = {number: signal.signal(number, stopper) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopper
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
