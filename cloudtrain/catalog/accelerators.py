"""The accelerators a job may name: one spelling each, and the vendors' spellings that mean the same chip.

The names were collected from public instance and price lists (SageMaker, Vertex AI, Azure ML; 30 November 2026) and
from Vertex AI's AcceleratorType. Memory is the vendor's label, per device; empty where no list gives it.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from cloudtrain.catalog.tables import Row, rows
from cloudtrain.errors import did_you_mean


class Accelerator(NamedTuple):
    """One row of the catalogue."""

    name: str
    memory_gib: int | None
    aliases: tuple[str, ...]
    source: str
    as_of: str


class UnknownAccelerator(LookupError):
    """No such accelerator; the message says what would be right."""


@cache
def accelerators() -> tuple[Accelerator, ...]:
    """All rows, in the order of the file."""
    return tuple(_accelerator(row) for row in rows("accelerators"))


def accelerator(spelling: str) -> Accelerator:
    """The row meant by a name or an alias, whatever its case and separators. Raises UnknownAccelerator."""
    found = _by_spelling().get(_plain(spelling))
    if found is None:
        raise UnknownAccelerator(_what_would_be_right(spelling))
    return found


def meant(spelling: str) -> tuple[Accelerator, ...]:
    """All rows that a question may mean: ``A100`` is both of its sizes. Raises UnknownAccelerator."""
    exact, family = _by_spelling().get(_plain(spelling)), f"{_plain(spelling)}-"
    found = tuple(row for row in accelerators() if row == exact or (spelling and row.name.startswith(family)))
    return found or (accelerator(spelling),)


def _accelerator(row: Row) -> Accelerator:
    memory = int(row["memory_gib"]) if row["memory_gib"] else None
    return Accelerator(row["name"], memory, tuple(row["aliases"].split()), row["source"], row["as_of"])


@cache
def _by_spelling() -> dict[str, Accelerator]:
    return {_plain(name): row for row in accelerators() for name in (row.name, *row.aliases)}


def _plain(spelling: str) -> str:
    return spelling.upper().replace("_", "-").replace(" ", "-")


def _what_would_be_right(spelling: str) -> str:
    """A bare A100 could be either of two: name both. Otherwise the nearest name, else all of them."""
    for row in rows("accelerators_ended"):
        if _plain(spelling) in {_plain(name) for name in (row["name"], *row["aliases"].split())}:
            return f"is no longer rented: {row['why']}"
    names = [row.name for row in accelerators()]
    sizes = [name for name in names if spelling and name.startswith(f"{_plain(spelling)}-")]
    if sizes:
        return f"comes in more than one size, write {' or '.join(sizes)}"
    near = did_you_mean(spelling, names)
    return f"is not in the catalogue{near or '; known: ' + ', '.join(names)}"
