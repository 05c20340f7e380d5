"""Metrics as JSON lines, one file per rank: ``<metrics folder>/rank-<rank>.jsonl``."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

from cloudtrain_job.folders import read_places
from cloudtrain_job.world import read_world


def log(**values: Any) -> None:
    """Append one line of metrics for this rank: ``ctj.log(step=10, loss=loss, test_accuracy=0.97)``.

    Values are numbers, booleans, strings, None, or anything with ``item()`` that holds one number (a 0-d tensor;
    reading one that lies on a GPU waits for it). JSON has no NaN and no infinity: they are written as the strings
    ``"nan"``, ``"inf"`` and ``"-inf"``. Every line also carries ``time`` (seconds since the epoch) and ``rank``.

    Any name will do. The live view and the report know: ``step``, ``total_steps``, ``epoch``, ``loss`` (this rank's),
    ``mean_loss`` (of all ranks), ``samples`` (consumed by all ranks so far), ``samples_per_second`` (of all ranks),
    ``test_accuracy`` (0 to 1) and ``final=True`` on the last line.

    Works before ``init()`` and without it. A line that cannot be written (disk full) is lost with one warning on
    stderr: metrics do not end a training. Raises TypeError for a value that is not one number, text or None.
    """
    reserved = {"time", "rank"} & values.keys()
    if reserved:
        raise TypeError(f"log() sets {' and '.join(sorted(reserved))} itself")
    _writer().write({name: _plain(name, value) for name, value in values.items()})


class Writer:
    """The metrics file of one rank. Whole lines in one write each, so that a reader never sees half of one."""

    def __init__(self, folder: Path, rank: int) -> None:
        self._rank = rank
        self._torn = False
        self._warned = False
        self._file: int | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(folder / f"rank-{rank}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            self._warn(error)

    def write(self, values: dict[str, Any]) -> None:
        """Append one record."""
        record = {"time": round(time.time(), 6), "rank": self._rank, **values}
        line = json.dumps(record, allow_nan=False).encode() + b"\n"
        line = b"\n" + line if self._torn else line
        if self._file is None:
            return
        try:
            self._torn = os.write(self._file, line) < len(line)
        except OSError as error:
            self._warn(error)

    def _warn(self, error: OSError) -> None:
        if not self._warned:
            print(f"cloudtrain_job: metrics are being lost: {error}", file=sys.stderr, flush=True)
        self._warned = True


_open: Writer | None = None


def _writer() -> Writer:
    global _open  # noqa: PLW0603  one file per process, opened when the first line is written
    if _open is None:
        _open = Writer(read_places(os.environ).metrics, read_world(os.environ).rank)
    return _open


def _plain(name: str, value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if not isinstance(value, float):
        value = _item(name, value)
    return value if not isinstance(value, float) or math.isfinite(value) else str(float(value))


def _item(name: str, value: Any) -> Any:
    try:
        number = value.item()
    except (AttributeError, ValueError, RuntimeError):
        number = None
    if not isinstance(number, (bool, int, float)):
        raise TypeError(f"log({name}=...): a {type(value).__name__} is not one number, text or None")
    return number
