"""The ledger: every run of this user, on this machine and on the clouds. SQLite, in ``home()/runs.sqlite3``.

What is going to be done is written before it is done, so a process may die anywhere:

    begin     the run, its request and its name are kept     died here: the next submit of the job finds the name,
    (upload, create)                                         asks the provider for it, and goes on from there
    record    what the provider said of it                   died before: as above; the provider knows the job
    record    again, whenever somebody has looked            died before: `status` looks again

Nothing here is the truth about a run that goes on: the provider is. The ledger says what to ask it for. Many processes
may use it at once (write-ahead log); each call is one transaction.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloudtrain.home import home, home_folder
from cloudtrain.record.state import State
from cloudtrain.runs.ledgerfile import connected, told

if TYPE_CHECKING:
    from cloudtrain.providers.port import Description

FILE = "runs.sqlite3"
_BUSY_SECONDS = 30.0


@dataclass(frozen=True)
class Entry:
    """A run, as its newest attempt was last seen."""

    run_id: str
    provider: str
    name: str
    """The job's."""
    family: str
    """The id of the first run of the same job, code and settings: the others are numbered after it."""
    project: str
    """Folder of the job file, absolute."""
    attempt: int
    native_name: str
    native_id: str
    """"" while the provider has not been heard to have it."""
    account: Mapping[str, str]
    """See ``Request.account``."""
    created: float
    state: State = State.PENDING
    vendor_state: str = ""
    reason: str = ""
    cause: str = ""
    url: str = ""
    nodes: int = 0
    started: float | None = None
    ended: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {**asdict(self), "state": self.state.value, "account": dict(self.account)}


class Ledger:
    """Open it, use it, close it; or use it in a ``with`` statement."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    @classmethod
    def open(cls, path: Path | None = None, *, patience: float = _BUSY_SECONDS) -> Ledger:
        """The user's own, or the one at ``path``; made if there is none. ``patience``: seconds to wait for a process
        that writes. Raises MissingError if it cannot be used."""
        file = path or home_folder() / FILE
        with told(file):
            with contextlib.suppress(FileExistsError):
                os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            return cls(connected(file, patience))

    @classmethod
    def exists(cls) -> bool:
        """Whether there is one: who only reads need not make it."""
        return (home() / FILE).exists()

    def close(self) -> None:
        """Give the file back."""
        self._db.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, entry: Entry, request: Mapping[str, Any], plan: Mapping[str, Any] | None = None) -> None:
        """Keep what is about to be asked of the provider: a new run, or a new attempt of one.

        ``plan``: what further attempts are made from, the job, the settings, the digests; None leaves it as it is.
        """
        row = _row(entry)
        with self._writing():
            if plan is not None:
                self._db.execute("INSERT OR REPLACE INTO plans VALUES(?, ?)", (entry.run_id, _packed(plan)))
            self._db.execute(f"INSERT OR REPLACE INTO runs({','.join(row)}) VALUES({_marks(row)})", tuple(row.values()))
            attempt = {
                **{name: row[name] for name in row if name in _ATTEMPT},
                "request": _packed(request),
            }
            self._db.execute(
                f"INSERT OR REPLACE INTO attempts({','.join(attempt)}) VALUES({_marks(attempt)})",
                tuple(attempt.values()),
            )

    def record(self, run_id: str, seen: Description) -> None:
        """Keep what the provider has said of an attempt. One that has not been begun here is passed over, and so is
        what was asked before the end of an attempt, and comes here after it."""
        changes = {
            "native_id": seen.native_id,
            "state": seen.state.value,
            "vendor_state": seen.vendor_state,
            "reason": seen.reason,
            "cause": seen.cause,
            "started": seen.started,
            "ended": seen.ended,
        }
        further = {"url": seen.url, **({"nodes": seen.nodes} if seen.nodes else {})}
        self._update(run_id, seen.attempt, changes, further, going_on="" if seen.state.is_final else seen.native_id)

    def fail(self, run_id: str, attempt: int, reason: str, cause: str) -> None:
        """Keep that an attempt was refused and has never begun."""
        changes = {"state": State.FAILED.value, "reason": reason, "cause": cause, "ended": time.time()}
        self._update(run_id, attempt, changes, {})

    def _update(
        self, run_id: str, attempt: int, changes: Mapping[str, Any], further: Mapping[str, Any], going_on: str = ""
    ) -> None:
        """``going_on``: the native id of an attempt that went on when it was seen."""
        with self._writing():
            self._set("attempts", changes, run_id, attempt, going_on)
            self._set("runs", {**changes, **further}, run_id, attempt, going_on)  # nothing, if a newer attempt is there

    def _set(self, table: str, changes: Mapping[str, Any], run_id: str, attempt: int, going_on: str) -> None:
        assigned = ",".join(f"{name}=?" for name in changes)
        where, values = "WHERE run_id=? AND attempt=?", [*changes.values(), run_id, attempt]
        if going_on:
            where += f" AND NOT (native_id=? AND state IN ({_OVER}))"
            values.append(going_on)
        self._db.execute(f"UPDATE {table} SET {assigned} {where}", values)

    def entry(self, run_id: str) -> Entry | None:
        """The run of that id."""
        return next(self._entries("WHERE run_id=?", run_id), None)

    def by_native(self, provider: str, native_id: str) -> Entry | None:
        """The run one of whose attempts the provider knows by that name, as it stood at that attempt."""
        where = "WHERE provider=? AND (attempts.native_id=? OR attempts.native_name=?)"
        return next(self._entries(where, provider, native_id, native_id, each_attempt=True), None)

    def at_attempt(self, run_id: str, attempt: int) -> Entry | None:
        """The run as it stood at that attempt."""
        where = "WHERE run_id=? AND attempts.attempt=?"
        return next(self._entries(where, run_id, attempt, each_attempt=True), None)

    def newest_created(self, run_id: str) -> Entry | None:
        """The run as it stands at the newest of its attempts that the provider has been heard to have."""
        where = "WHERE run_id=? AND attempts.native_id<>'' ORDER BY attempts.attempt DESC LIMIT 1"
        return next(self._entries(where, run_id, each_attempt=True), None)

    def beginning_with(self, text: str, limit: int = 10) -> list[Entry]:
        """Runs whose ids begin so, the newest first."""
        upper = text + "\U0010ffff"
        where = "WHERE run_id >= ? AND run_id < ? ORDER BY created DESC LIMIT ?"
        return list(self._entries(where, text, upper, limit))

    def family(self, run_id: str) -> list[Entry]:
        """All runs of the same job, code and settings, the oldest first."""
        return list(self._entries("WHERE family=? ORDER BY created", run_id))

    def runs(
        self,
        limit: int = 50,
        *,
        provider: str | None = None,
        name: str | None = None,
        state: State | None = None,
        project: str | None = None,
    ) -> list[Entry]:
        """The newest first."""
        wanted = {"provider": provider, "name": name, "state": state.value if state else None, "project": project}
        asked = {column: value for column, value in wanted.items() if value is not None}
        where = f"WHERE {' AND '.join(f'{column}=?' for column in asked)} " if asked else ""
        return list(self._entries(f"{where}ORDER BY created DESC LIMIT ?", *asked.values(), limit))

    def request(self, run_id: str, attempt: int) -> dict[str, Any] | None:
        """What was kept by ``begin``."""
        return self._kept("SELECT request FROM attempts WHERE run_id=? AND attempt=?", run_id, attempt)

    def plan(self, run_id: str) -> dict[str, Any] | None:
        """What was kept by ``begin``; None for a run that came here otherwise."""
        return self._kept("SELECT plan FROM plans WHERE run_id=?", run_id)

    def _kept(self, question: str, *values: object) -> dict[str, Any] | None:
        with told(Path(FILE)):
            row = self._db.execute(question, values).fetchone()
            loaded: dict[str, Any] | None = json.loads(row[0]) if row else None
            return loaded

    def _entries(self, where: str, *values: object, each_attempt: bool = False) -> Iterator[Entry]:
        """Each run as it stands, or as it stood at each of its attempts."""
        chosen = _EACH_ATTEMPT if each_attempt else f"SELECT {','.join(_COLUMNS)} FROM runs"
        with told(Path(FILE)):
            yield from map(_entry, self._db.execute(f"{chosen} {where}", values))

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction; asks for the right to write at once, since a reader that turns writer may be refused it."""
        with told(Path(FILE)):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):  # a full disk may have ended it already
                    self._db.execute("ROLLBACK")
                raise


_COLUMNS = tuple(column.name for column in fields(Entry))
_ATTEMPT = frozenset(
    {"run_id", "attempt", "native_name", "native_id", "state", "vendor_state", "reason", "cause", "created", "started",
     "ended"}
)  # fmt: skip
_EACH_ATTEMPT = (
    f"SELECT {','.join(f'attempts.{name}' if name in _ATTEMPT else f'runs.{name}' for name in _COLUMNS)} "
    "FROM attempts JOIN runs USING(run_id)"
)
_OVER = ",".join(f"'{state.value}'" for state in State if state.is_final)


def _marks(row: Mapping[str, Any]) -> str:
    return ",".join("?" * len(row))


def _row(entry: Entry) -> dict[str, Any]:
    """Column -> value. The names are those of the fields above, never a user's."""
    row = {name: getattr(entry, name) for name in _COLUMNS}
    return {**row, "state": entry.state.value, "account": _packed(entry.account)}


def _packed(content: Mapping[str, Any]) -> str:
    return json.dumps(dict(content), separators=(",", ":"))


def _entry(row: tuple[Any, ...]) -> Entry:
    found = dict(zip(_COLUMNS, row, strict=True))
    try:
        state = State(found["state"])
    except ValueError:  # of a later version
        state = State.UNKNOWN
    return Entry(**{**found, "state": state, "account": json.loads(found["account"])})
