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

from cloudtrain.errors import MissingError
from cloudtrain.home import home, home_folder
from cloudtrain.runs.state import State

if TYPE_CHECKING:
    from cloudtrain.providers.port import Description

FILE = "runs.sqlite3"
_VERSION = 1
_BUSY_SECONDS = 30.0
_SCHEMA = """
CREATE TABLE runs(
  run_id TEXT PRIMARY KEY, provider TEXT NOT NULL, name TEXT NOT NULL, family TEXT NOT NULL, project TEXT NOT NULL,
  attempt INTEGER NOT NULL, native_name TEXT NOT NULL, native_id TEXT NOT NULL, state TEXT NOT NULL,
  vendor_state TEXT NOT NULL, reason TEXT NOT NULL, cause TEXT NOT NULL, url TEXT NOT NULL, account TEXT NOT NULL,
  nodes INTEGER NOT NULL, created REAL NOT NULL, started REAL, ended REAL
);
CREATE TABLE plans(run_id TEXT PRIMARY KEY, plan TEXT NOT NULL);
CREATE INDEX runs_by_time ON runs(created);
CREATE INDEX runs_by_state ON runs(state, created);
CREATE INDEX runs_by_name ON runs(name, created);
CREATE INDEX runs_by_provider ON runs(provider, created);
CREATE INDEX runs_by_project ON runs(project, created);
CREATE INDEX runs_by_family ON runs(family);
CREATE TABLE attempts(
  run_id TEXT NOT NULL, attempt INTEGER NOT NULL, native_name TEXT NOT NULL, native_id TEXT NOT NULL,
  state TEXT NOT NULL, vendor_state TEXT NOT NULL, reason TEXT NOT NULL, cause TEXT NOT NULL,
  created REAL NOT NULL, started REAL, ended REAL, request TEXT NOT NULL,
  PRIMARY KEY(run_id, attempt)
);
CREATE INDEX attempts_by_id ON attempts(native_id);
CREATE INDEX attempts_by_name ON attempts(native_name);
"""


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
        with _told(file):
            with contextlib.suppress(FileExistsError):
                os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            return cls(_connected(file, patience))

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
        found = self._db.execute("SELECT request FROM attempts WHERE run_id=? AND attempt=?", (run_id, attempt))
        row = found.fetchone()
        loaded: dict[str, Any] | None = json.loads(row[0]) if row else None
        return loaded

    def plan(self, run_id: str) -> dict[str, Any] | None:
        """What was kept by ``begin``; None for a run that came here otherwise."""
        row = self._db.execute("SELECT plan FROM plans WHERE run_id=?", (run_id,)).fetchone()
        loaded: dict[str, Any] | None = json.loads(row[0]) if row else None
        return loaded

    def _entries(self, where: str, *values: object, each_attempt: bool = False) -> Iterator[Entry]:
        """Each run as it stands, or as it stood at each of its attempts."""
        chosen = _EACH_ATTEMPT if each_attempt else f"SELECT {','.join(_COLUMNS)} FROM runs"
        with _told(Path(FILE)):
            yield from map(_entry, self._db.execute(f"{chosen} {where}", values))

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction; asks for the right to write at once, since a reader that turns writer may be refused it."""
        with _told(Path(FILE)):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")


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


def _connected(file: Path, patience: float) -> sqlite3.Connection:
    db = sqlite3.connect(file, timeout=patience, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")  # what is about to be billed must be kept though the power fails
        _at_version(db)
    except BaseException:
        db.close()
        raise
    return db


def _at_version(db: sqlite3.Connection) -> None:
    """Make the tables. Two processes may both find none: the second one looks again once it may write."""
    if db.execute("PRAGMA user_version").fetchone()[0] == 0:
        db.execute("BEGIN IMMEDIATE")
        if db.execute("PRAGMA user_version").fetchone()[0] == 0:
            for statement in filter(str.strip, _SCHEMA.split(";")):
                db.execute(statement)
            db.execute(f"PRAGMA user_version={_VERSION}")
        db.execute("COMMIT")
    found = db.execute("PRAGMA user_version").fetchone()[0]
    if found > _VERSION:
        raise MissingError(
            f"the ledger of runs was written by a newer cloudtrain (form {found}, this one knows {_VERSION})",
            hint="update cloudtrain, or set CLOUDTRAIN_HOME to another folder",
        )


@contextlib.contextmanager
def _told(file: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        reason = getattr(error, "strerror", None) or error
        raise MissingError(
            f"the ledger of runs, {home() / file.name if not file.is_absolute() else file}, cannot be used: {reason}",
            hint="free some space, see to it that the file can be written, or set CLOUDTRAIN_HOME to another folder",
        ) from error


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
