"""The file that the ledger is: its form, and what can be wrong with it."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from cloudtrain.errors import MissingError
from cloudtrain.home import home

_VERSION = 1
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


def connected(file: Path, patience: float) -> sqlite3.Connection:
    """The file at its present form. ``patience``: seconds to wait for a process that writes. Raises sqlite3.Error, and
    MissingError for a file of a later cloudtrain."""
    db = sqlite3.connect(file, timeout=patience, isolation_level=None)
    try:
        _with_log(db, patience)
        db.execute("PRAGMA synchronous=FULL")  # what is about to be billed must be kept though the power fails
        _at_version(db)
    except BaseException:
        db.close()
        raise
    return db


def _with_log(db: sqlite3.Connection, patience: float) -> None:
    """Set the write-ahead log. SQLite itself does not wait here: of two processes that turn a new file's journal at
    once, one is told at once that it is locked (no busy handler while a read lock is held, sqlite3BtreeBeginTrans)."""
    deadline = time.monotonic() + patience
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.005)


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
def told(file: Path) -> Iterator[None]:
    """Turns what goes wrong with the file, or with what it holds, into MissingError."""
    try:
        yield
    except (sqlite3.Error, OSError, ValueError, TypeError) as error:  # the last two: values that nobody here has kept
        reason = getattr(error, "strerror", None) or error
        raise MissingError(
            f"the ledger of runs, {home() / file.name if not file.is_absolute() else file}, cannot be used: {reason}",
            hint=_hint(error),
        ) from error


def _hint(error: Exception) -> str:
    """What to do about it. The codes of errors are known since Python 3.11, the words since ever."""
    if "locked" in str(error) and isinstance(error, sqlite3.OperationalError):
        return "another process has been writing it all the time; look for one that hangs, then try again"
    if isinstance(error, (OSError, sqlite3.OperationalError)) and "no such" not in str(error):
        return "free some space, see to it that the file can be written, or set CLOUDTRAIN_HOME to another folder"
    return (
        "it is damaged: move it away and a new one is made; runs on the clouds are found by their names there, "
        "such as sagemaker:NAME, those here in the folder of their project"
    )
