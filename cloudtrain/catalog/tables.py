"""The data files of the catalogue as rows, read once."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path

CLOUDS = ("sagemaker", "vertex", "azureml")

Row = Mapping[str, str]


@cache
def rows(name: str) -> tuple[Row, ...]:
    """All rows of ``NAME.csv`` in the order of the file; an empty cell is an empty text."""
    with Path(__file__).with_name(f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def number(cell: str) -> float | None:
    """The cell as a number; None where it is empty, which means unknown."""
    return float(cell) if cell else None
