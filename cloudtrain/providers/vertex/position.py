"""How far a reader of a job's log has come, as plain JSON of bounded size. Pure.

Entries are asked for by their timestamps, and can be seen late and in any order: each node's agent sends what it has
when it sees fit. So two things are done.

- What is new is given out only some seconds after it was first seen. What has come late by then is put in its place,
  so that each rank's lines keep their order; gcloud waits for the same reason.
- The last stretch of what has been given out is asked for again each time, and what is known of it is left out. So an
  entry that comes still later is not lost, it is only out of its place.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cloudtrain.providers.port import Cursor

SECOND = 1_000_000_000
STRETCH = 60 * SECOND
"""What is asked for again, in nanoseconds."""
MOST_KEPT = 10_000
"""Entries that are known again, about 300 kB of JSON; where a stretch holds more it is made shorter."""
_DIGEST_BYTES = 6
"""Among 10,000 entries one of 28 billion new ones would be taken for one that is known."""


class Key(NamedTuple):
    """Tells an entry from all others: to the service, equal time, log and insertId are the same entry."""

    time: int
    """Nanoseconds since the epoch."""
    digest: str


def key_of(time: int, log: object, insert_id: object) -> Key:
    """The key of an entry."""
    digest = hashlib.blake2b(f"{time} {log} {insert_id}".encode(), digest_size=_DIGEST_BYTES).digest()
    return Key(time, base64.urlsafe_b64encode(digest).decode())


@dataclass
class Position:
    """Times are the service's, in nanoseconds since the epoch; when a hold ends is this machine's, in seconds."""

    floor: int
    """What is older is not asked for any more."""
    released: int
    """Up to here entries may be given out."""
    hold: tuple[float, int] | None = None
    """From when on, and up to where, more may be given out."""
    at: int | None = None
    """In the middle of what may be given out: where to go on. What is before it has been given out."""
    kept: dict[str, int] = field(default_factory=dict)
    """Digest -> time of the entries from ``floor`` on that have been given out."""

    @classmethod
    def begun(cls, created: int, newest: int | None, *, order: float, is_over: bool, now: float) -> Position:
        """The first reading, of a job that was created at ``created``.

        ``newest``: time of the newest entry that there is. ``order``: seconds that an entry waits for those before it;
        the log of a job that is over is given out as it is.
        """
        if newest is None or newest <= created:
            return cls(created, created)
        if is_over:
            return cls(created, newest)
        return cls(created, max(created, newest - int(order * SECOND)), (now + order, newest))

    @classmethod
    def of(cls, cursor: Cursor) -> Position | None:
        """None for the beginning, and for what is no position."""
        try:
            floor, hold, at = int(cursor["floor"]), cursor["hold"], cursor["at"]
            return cls(
                floor,
                int(cursor["released"]),
                (float(hold[0]), int(hold[1])) if hold else None,
                None if at is None else int(at),
                {str(digest): floor + int(offset) for offset, digest in cursor["kept"]},
            )
        except (LookupError, TypeError, ValueError):
            return None

    def as_cursor(self) -> dict[str, Any]:
        """Plain JSON."""
        kept = [[time - self.floor, digest] for digest, time in self.kept.items()]
        hold = list(self.hold) if self.hold else None
        return {"floor": self.floor, "released": self.released, "hold": hold, "at": self.at, "kept": kept}

    def waits(self, order: float, now: float) -> bool:
        """Whether what has been seen last is to wait yet. A clock that was put back does not make it wait longer."""
        return self.hold is not None and now < self.hold[0] <= now + order

    def release(self, newest: int | None, order: float, now: float) -> None:
        """What has waited may be given out; what is newer waits now. ``newest``: the newest entry that there is."""
        if self.hold:
            self.released = max(self.released, self.hold[1])
        self.hold = (now + order, newest) if newest is not None and newest > self.released else None

    @property
    def start(self) -> int:
        """Where to ask from, up to ``released``."""
        return self.floor if self.at is None else self.at

    def takes(self, key: Key) -> bool:
        """Whether an entry has not been given out before. It counts as given out from then on."""
        if key.digest in self.kept:
            return False
        self.kept[key.digest] = key.time
        return True

    def paused(self, at: int) -> None:
        """More is there up to ``released``, from ``at`` on."""
        self.at = at
        self._forget(self.floor)

    def done(self, now: float) -> None:
        """All up to ``released`` has been given out. An entry from the future does not hide what comes before it."""
        self.at = None
        self._forget(min(self.released, int(now * SECOND)) - STRETCH)

    def _forget(self, floor: int) -> None:
        """Keep what is needed from ``floor`` on, and not too much of it; never half of the entries of one moment."""
        times = sorted(self.kept.values())
        if len(times) > MOST_KEPT:
            floor = max(floor, times[-MOST_KEPT - 1] + 1)
        if self.at is not None:
            floor = min(floor, self.at)
        self.floor = max(self.floor, floor)
        self.kept = {digest: time for digest, time in self.kept.items() if time >= self.floor}
