"""``python -m benchmarks``: all rows as a Markdown table, or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from types import ModuleType

from benchmarks import help, listing, machine, others, render, start, submit, throughput
from benchmarks.measuring import CommandFailed, Row

CLAIMS: dict[str, ModuleType] = {
    "help": help, "render": render, "start": start, "others": others, "throughput": throughput,
    "submit": submit, "listing": listing,
}  # fmt: skip


def main() -> int:
    """Exit code 1 if a measured command failed or, with ``--check``, if a bound is missed."""
    options = _options()
    where = machine.describe()
    if not options.json:
        _print_head(where)
    rows: list[Row] = []
    try:
        for name in options.only or CLAIMS:
            for row in CLAIMS[name].rows():
                rows.append(row)
                if not options.json:
                    _print_row(row)
    except CommandFailed as error:
        print(error, file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps({"machine": where, "rows": [_as_data(row) for row in rows]}, indent=1))
    return int(options.check and not all(row.holds for row in rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(CLAIMS), help="may be repeated")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a bound is missed")
    return parser.parse_args()


def _print_head(where: dict[str, str | int | float]) -> None:
    print(", ".join(f"{name} {value}" for name, value in where.items()), end="\n\n")
    _print_line(("claim", "ratio, median", "min..max", "bound", "n", "absolute, medians"))
    _print_line(("---",) * 6)


def _print_row(row: Row) -> None:
    _print_line(
        (
            row.what,
            f"**{row.ratio:.2f}x**" if row.holds else f"**{row.ratio:.2f}x** (missed)",
            f"{min(row.ratios):.2f}..{max(row.ratios):.2f}",
            "" if row.bound is None else f"{'>=' if row.at_least else '<='} {row.bound}x",
            str(len(row.ratios)),
            f"{row.subject:.3g} {row.unit} / {row.base:.3g} {row.unit}",
        )
    )


def _print_line(cells: Iterable[str]) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def _as_data(row: Row) -> dict[str, object]:
    return {**asdict(row), "ratio": row.ratio, "holds": row.holds}


if __name__ == "__main__":
    sys.exit(main())
