"""The last thing a node does: its results are taken to their place, whatever the end was, as far as the time goes."""

from __future__ import annotations

import math
import time
from typing import Callable

from cloudtrain_launch.helper import Chore


class Delivery:
    """Begun once; ``start`` gives the process that does it (``deliver.py``)."""

    def __init__(self, start: Callable[[], Chore]) -> None:
        self.chore: Chore | None = None
        self.until = math.inf
        """When the time for it is over."""
        self._start = start
        self._given_up = False

    def begin(self) -> None:
        """Unless it has begun."""
        if self.chore is None:
            self.chore = self._start()

    @property
    def is_over(self) -> bool:
        """Whether nothing is on its way (any more)."""
        return self.chore is None or not self.chore.runs or self._given_up

    @property
    def is_late(self) -> bool:
        """Whether it goes on beyond its time."""
        return not self.is_over and time.monotonic() > self.until

    def give_up(self) -> None:
        """Its process has been killed; should that hang on a disk that is gone, nobody waits for it."""
        self._given_up = True
