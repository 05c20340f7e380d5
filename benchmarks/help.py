"""``cloudtrain --help`` costs little more than importing click, which it cannot do without."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measuring import Row, in_turns, wall
from benchmarks.subjects import cloudtrain, python

ROUNDS = 25


def rows() -> Iterator[Row]:
    """One row."""
    measured = in_turns({"click": wall(python("import click")), "help": wall(cloudtrain("--help"))}, ROUNDS)
    yield Row.of(
        "help", "`cloudtrain --help` / `python -c 'import click'`", measured, "help", "click", unit="s", bound=1.4
    )
