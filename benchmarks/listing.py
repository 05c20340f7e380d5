"""``cloudtrain runs`` takes as long with 100,000 runs in the ledger as with one, and less than 0.3 s.

The bound is on the ratio; the second is the absolute figure of the row, on a machine with nothing else to do.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measuring import Command, Row, in_turns, wall
from benchmarks.subjects import cloudtrain
from cloudtrain.runs.ledger import FILE, Entry, Ledger

ROUNDS = 25
RUNS = 100_000

_ONE = Entry(
    run_id="bench-0000000000", provider="sagemaker", name="bench", family="bench-0000000000", project="/bench",
    attempt=1, native_name="bench-0000000000-a1", native_id="bench-0000000000-a1", account={"region": "us-east-1"},
    created=0.0,
)  # fmt: skip
_COPY = """
WITH RECURSIVE counter(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM counter WHERE number < ?)
INSERT INTO runs SELECT {columns} FROM runs JOIN counter
"""
_NEW = {"run_id": "printf('bench-%010x', number)", "created": "created - number"}


def rows() -> Iterator[Row]:
    """All runs, and those of one state, which none of the newest is in."""
    with TemporaryDirectory(prefix="bench-") as name:
        few, many = Path(name, "few"), Path(name, "many")
        _fill(few, 1)
        _fill(many, RUNS)
        subjects = {
            "few": wall(_command(few)),
            "many": wall(_command(many)),
            "failed": wall(_command(many, "--state", "FAILED")),
        }
        measured = in_turns(subjects, ROUNDS)
    for subject, words in (("many", "runs"), ("failed", "runs --state FAILED")):
        what = f"`cloudtrain {words}`, {RUNS:,} runs in the ledger / 1 run"
        yield Row.of(f"listing-{subject}", what, measured, subject, "few", unit="s", bound=1.3)


def _fill(home: Path, runs: int) -> None:
    """One run as it is kept, the others are copies of it."""
    home.mkdir()
    with Ledger.open(home / FILE) as ledger:
        ledger.begin(replace(_ONE, created=time.time()), {})
    if runs > 1:
        with sqlite3.connect(home / FILE) as db:
            columns = [_NEW.get(name, name) for _, name, *_ in db.execute("PRAGMA table_info(runs)")]
            db.execute(_COPY.format(columns=",".join(columns)), (runs - 1,))
        db.close()


def _command(home: Path, *words: str) -> Command:
    command = cloudtrain("runs", *words)
    return replace(command, env={**(command.env or {}), "CLOUDTRAIN_HOME": str(home)})
