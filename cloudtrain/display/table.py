"""Rows in columns, for people."""

from __future__ import annotations

from collections.abc import Sequence

_BETWEEN = "  "


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with columns as wide as what is in them; the last one is left as it is."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header) - 1)]
    return [
        _BETWEEN.join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in (header, *rows)
    ]
