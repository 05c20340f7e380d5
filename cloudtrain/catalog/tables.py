"""The data files of the catalogue as rows, read once."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

CLOUDS = ("sagemaker", "vertex", "azureml")

Row = Mapping[str, str]


@cache
def rows(name: str) -> tuple[Row, ...]:
    """All rows of ``NAME.csv`` in the order of the file; an empty cell is an empty text."""
    text = files("cloudtrain.catalog").joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def number(cell: str) -> float | None:
    """The cell as a number; None where it is empty, which means unknown."""
    return float(cell) if cell else None
