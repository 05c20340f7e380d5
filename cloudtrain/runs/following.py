"""Follows a run to its end, wherever it runs: states and lines go to an observer, what is seen into the ledger.

    describe -> state told and kept -> log pages until caught up -> wait -> ...   over: late lines, why, the end

The job does not need this: a follower that is killed takes nothing with it, and another one begins where it likes. A
cloud that cannot be reached for a while is waited for; what is refused (an expired token) ends the following, not the
job.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING

from cloudtrain.errors import CloudtrainError, RefusedError, SpecError, UnreachableError
from cloudtrain.providers.port import Client, Cursor, Description, LogLine
from cloudtrain.record.observer import Observer
from cloudtrain.record.state import State

if TYPE_CHECKING:
    from cloudtrain.runs.ledger import Ledger

POLL = "CLOUDTRAIN_POLL_SECONDS"
"""Variable: seconds between two looks, whatever the provider's limits would ask for. Set by ``cloudtrain emulate``."""
_SILENCE_SECONDS = 1800.0
"""After so long without any answer the following ends; the job goes on."""
_JITTER = 0.2
_SETTLE_POLLS = 3
"""Looks after the end, at least, before the lines are taken as complete."""


def poll_seconds(client: Client) -> float:
    """The wait between two looks. Raises SpecError for a variable that is no number of seconds."""
    given = os.environ.get(POLL)
    if not given:
        return client.poll_seconds
    try:
        seconds = float(given)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 1e6:
        raise SpecError(f"{POLL} must be a number of seconds above 0, not {given!r}")
    return seconds


class Reader:
    """Gives every line of a run's log once, as it comes."""

    def __init__(self, client: Client, native_id: str) -> None:
        self._client = client
        self._native_id = native_id
        self._cursor: Cursor = {}

    def read(self, tell: Callable[[LogLine], None]) -> bool:
        """Tell all lines that are there now. Whether there were any."""
        any_line = False
        while True:
            page = self._client.logs(self._native_id, self._cursor)
            self._cursor = page.cursor
            for line in page.lines:
                any_line = True
                tell(line)
            if page.caught_up:
                return any_line


class Follower:
    """One following of one attempt."""

    def __init__(
        self,
        client: Client,
        native_id: str,
        observer: Observer,
        ledger: Ledger | None,
        *,
        run_id: str = "",
        since: float | None = None,
        tell: Callable[[LogLine], None] | None = None,
    ) -> None:
        """``since``: seconds since the epoch, for lines; those without a time count as later. ``tell`` hears of lines
        in place of the observer: for whom there is nothing but lines, so logs that may not be read are an error."""
        self._client = client
        self._native_id = native_id
        self._observer = observer
        self._ledger = ledger
        self._run_id = run_id
        self._since = since
        self._lines_alone = tell is not None
        self._tell_line = tell or (lambda line: observer.line(line.node, line.rank, line.text))
        self._reader = Reader(client, native_id)
        self._poll = poll_seconds(client)
        self._state: State | None = None
        self._words = ""
        self._restarts = 0
        self._heard = time.monotonic()
        self._mute = False

    def run(self) -> Description:
        """To the end. Raises UnreachableError, or RefusedError if the provider lets nobody look any more."""
        steps = self.steps()
        while True:
            try:
                next(steps)
            except StopIteration as end:
                seen: Description = end.value
                return seen

    def steps(self) -> Generator[None, None, Description]:
        """The same, for who wants to do something between two looks."""
        while True:
            seen = self._look()
            if seen is not None:
                self._tell(seen)
            self._read()
            yield
            if seen is not None and seen.state.is_final:
                yield from self._settle()
                return (yield from self._explained(seen))
            self._pause(self._poll)

    def _look(self) -> Description | None:
        """None while the provider cannot be reached."""
        try:
            seen = self._client.describe(self._native_id)
        except UnreachableError as error:
            if time.monotonic() - self._heard > _SILENCE_SECONDS:
                raise
            self._observer.note(f"no answer, asking again: {error.message}")
            return None
        self._heard = time.monotonic()
        return seen

    def _tell(self, seen: Description) -> None:
        changed = self._state is None or seen.state.is_final or seen.vendor_state != self._words
        if seen.restarts > self._restarts:
            self._observer.note(f"{seen.provider} has started the job anew ({seen.restarts})")
        self._restarts = max(self._restarts, seen.restarts)
        state = _onwards(self._state, seen.state)
        if state is not self._state:
            self._observer.state(state)
        if seen.state is State.UNKNOWN and changed:
            self._observer.note(
                f"{seen.provider} calls the state {seen.vendor_state!r}, which cloudtrain does not know"
            )
        if state is not self._state and not seen.settled:
            self._observer.note(f"{state}: {seen.reason}")
        self._state, self._words = state, seen.vendor_state
        if changed and self._ledger:
            record(self._ledger, self._run_id or seen.run_id, seen, self._observer)

    def _read(self) -> bool | None:
        """Whether there were lines; None while nobody knows. Logs that may not be read are no reason to stop looking at
        the job."""
        if self._mute:
            return False
        try:
            found = self._reader.read(self._pass_on)
        except UnreachableError as error:
            self._observer.note(f"log lines will come later: {error.message}")
            return None
        except RefusedError as error:
            if self._lines_alone:
                raise
            self._mute = True
            self._observer.note(f"without log lines: {error}")
            return False
        self._heard = time.monotonic()
        return found

    def _pass_on(self, line: LogLine) -> None:
        if self._since is None or line.time is None or line.time >= self._since:
            self._tell_line(line)

    def _settle(self) -> Iterator[None]:
        """Services show the last lines late: read on until nothing has come for as long as that takes. What cannot be
        asked is not nothing."""
        settle = min(self._client.settle_seconds, self._poll * _SETTLE_POLLS * 10)
        quiet_since, looks = time.monotonic(), 0
        while not self._mute and (looks < _SETTLE_POLLS or time.monotonic() - quiet_since < settle):
            self._pause(min(self._poll, max(settle / _SETTLE_POLLS, 0.05)))
            found = self._read()
            yield
            if found is None and time.monotonic() - self._heard > _SILENCE_SECONDS:
                self._observer.note("the last lines may be missing")
                return
            looks += 1
            if found is not False:
                quiet_since, looks = time.monotonic(), 0

    def _explained(self, seen: Description) -> Generator[None, None, Description]:
        """The end as it is known once the service has said why, or has had its time to say so."""
        while not seen.settled:
            if found := self._look():
                self._tell(found)
                seen = found
            yield
            if not seen.settled:
                self._pause(self._poll)
        return seen

    def _pause(self, seconds: float) -> None:
        """Not all followers at the same moment."""
        end = time.monotonic() + seconds * random.uniform(1 - _JITTER, 1 + _JITTER)
        while (left := end - time.monotonic()) > 0:
            self._observer.tick()
            time.sleep(min(left, 0.25))


def _onwards(before: State | None, now: State) -> State:
    """The state to tell of. Services go to and fro while they look for machines (Azure ML queues a job again once its
    image is built); a job that has run and waits for machines once more is being restarted."""
    if before is State.PROVISIONING and now is State.PENDING:
        return before
    if before in (State.RUNNING, State.RESTARTING) and now in (State.PENDING, State.PROVISIONING):
        return State.RESTARTING
    return now


def record(ledger: Ledger, run_id: str, seen: Description, observer: Observer) -> None:
    """Keep what was seen. A disk that is full does not end the following: the provider keeps the truth."""
    try:
        ledger.record(run_id, seen)
    except CloudtrainError as error:
        observer.note(error.message)
