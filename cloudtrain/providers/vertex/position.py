"""How far a reader of a job's log has come, as plain JSON of bounded size. Pure.

An entry has two times: ``timestamp``, when its line was written, and ``receiveTimestamp``, when Cloud Logging received
it (its reference of LogEntry). Lists are in the order of the first alone (that of ``entries.list``), and an entry can
be seen late: each node's agent sends what it has when it sees fit. So two things are done.

- What is new is given out only some seconds after it was first seen. What has come late by then is put in its place,
  so that each rank's lines keep their order; gcloud waits for the same reason.
- Of what is older, all that was received in the last stretch before the reading is asked for again, however long ago
  it was written, and what is known of it is left out. So an entry that comes still later is not lost, only out of its
  place.

What is promised: every entry is given out once, however late it is sent, if the service shows it within ``STRETCH`` of
its being received, and has not received more than ``MOST_KEPT`` others in between. How soon it does is not documented;
``entries.tail`` waits for what comes late for a minute at most (the reference of its ``bufferWindow``), and so do we.
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
_UNIT = SECOND // 1000
"""Of the times that are kept. They are rounded up: what is known longer than is needed does no harm."""


class Key(NamedTuple):
    """Tells an entry from all others: to the service, equal time, log and insertId are the same entry."""

    time: int
    """When it was written: nanoseconds since the epoch, as is the other one."""
    received: int
    digest: str


def key_of(time: int, received: int, log: object, insert_id: object) -> Key:
    """The key of an entry."""
    digest = hashlib.blake2b(f"{time} {log} {insert_id}".encode(), digest_size=_DIGEST_BYTES).digest()
    return Key(time, received, base64.urlsafe_b64encode(digest).decode())


@dataclass
class Position:
    """Times are the service's, in nanoseconds since the epoch; when a hold ends is this machine's, in seconds.

    Entries are asked for that were written up to ``released``, and either after ``told`` or received from ``floor`` on.
    """

    released: int
    """What was written up to here may be given out."""
    told: int
    """What was written up to here has been given out, as far as it had been seen then."""
    floor: int
    """What was written up to ``told`` and received before this is not asked for any more."""
    rising: int
    """The floor of the next reading."""
    hold: tuple[float, int] | None = None
    """From when on, and up to where, more may be given out."""
    at: int | None = None
    """In the middle of a reading: where to go on. What was written before it has been given out."""
    kept: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Digest -> when it was written, and received, of the entries given out that may be seen again."""

    @classmethod
    def begun(cls, created: int, newest: Key | None, *, order: float, is_over: bool, now: float) -> Position:
        """The first reading, of a job that was created at ``created``.

        ``newest``: the newest entry that there is. ``order``: seconds that an entry waits for those before it;
        the log of a job that is over is given out as it is.
        """
        if newest is None or newest.time <= created:
            return cls(created, created - 1, created, created)
        rising = max(created, newest.received - STRETCH)
        if is_over:
            return cls(newest.time, created - 1, created, rising)
        released = max(created, newest.time - int(order * SECOND))
        return cls(released, created - 1, created, rising, (now + order, newest.time))

    @classmethod
    def of(cls, cursor: Cursor) -> Position | None:
        """None for the beginning, and for what is no position."""
        try:
            floor, hold, at = int(cursor["floor"]), cursor["hold"], cursor["at"]
            return cls(
                int(cursor["released"]),
                int(cursor["told"]),
                floor,
                int(cursor["rising"]),
                (float(hold[0]), int(hold[1])) if hold else None,
                None if at is None else int(at),
                {
                    str(digest): (floor + int(time) * _UNIT, floor + int(received) * _UNIT)
                    for time, received, digest in cursor["kept"]
                },
            )
        except (LookupError, TypeError, ValueError):
            return None

    def as_cursor(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "released": self.released,
            "told": self.told,
            "floor": self.floor,
            "rising": self.rising,
            "hold": list(self.hold) if self.hold else None,
            "at": self.at,
            "kept": [
                [self._units(time), self._units(received), digest] for digest, (time, received) in self.kept.items()
            ],
        }

    def _units(self, moment: int) -> int:
        return -((self.floor - moment) // _UNIT)

    def waits(self, order: float, now: float) -> bool:
        """Whether what has been seen last is to wait yet. A clock that was put back does not make it wait longer."""
        return self.hold is not None and now < self.hold[0] <= now + order

    def release(self, newest: Key | None, order: float, now: float) -> None:
        """What has waited may be given out; what is newer waits now. ``newest``: the newest entry that there is."""
        if self.hold:
            self.released = max(self.released, self.hold[1])
        self.hold = (now + order, newest.time) if newest is not None and newest.time > self.released else None
        # Seen before the reading begins: what comes into its place while it goes on is for the next one.
        seen = [received for _, received in self.kept.values()] + ([newest.received] if newest else [])
        self.rising = max(self.rising, max(seen, default=0) - STRETCH)

    def takes(self, key: Key) -> bool:
        """Whether an entry has not been given out before. It counts as given out from then on."""
        if key.digest in self.kept:
            return False
        self.kept[key.digest] = key.time, key.received
        return True

    def paused(self, at: int) -> None:
        """More is there up to ``released``, from ``at`` on."""
        self.at = at
        self._forget()

    def done(self) -> None:
        """All up to ``released`` has been given out."""
        self.at, self.told = None, self.released
        self._forget()
        self.floor = self.rising

    def _forget(self) -> None:
        """Keep what may be seen again, and not too much of it; never half of the entries of one moment."""
        late = sorted(received for _, received in self.kept.values() if received >= self.rising)
        if len(late) > MOST_KEPT:
            self.rising = late[-MOST_KEPT - 1] + 1
        self.kept = {
            digest: (time, received)
            for digest, (time, received) in self.kept.items()
            if received >= self.rising or (self.at is not None and time >= self.at)
        }
