"""What the ranks logged: JSON lines in ``metrics/rank-<r>.jsonl``, read as they grow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Record = dict[str, Any]


class MetricsReader:
    """Gives each record once, as soon as its line is whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}

    def new(self) -> Iterator[Record]:
        """The records written since the last call, per rank in order. A broken line is passed over."""
        for path in sorted(self._folder.glob("rank-[0-9]*.jsonl")):
            yield from self._new_of(path)

    def _new_of(self, path: Path) -> Iterator[Record]:
        try:
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                data = file.read()
        except OSError:
            return
        whole = data[: data.rfind(b"\n") + 1]
        self._read[path] = self._read.get(path, 0) + len(whole)
        for line in whole.splitlines():
            record = _parse(line)
            if record is not None:
                record["rank"] = int(path.stem.partition("-")[2])  # the file's, whatever the line says
                yield record


def _parse(line: bytes) -> Record | None:
    try:
        record = json.loads(line, parse_constant=lambda _: None)  # NaN and Infinity are no JSON
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def number(value: object) -> float | None:
    """A finite number, or None for everything else a metrics line may hold."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) < 1e300 else None
