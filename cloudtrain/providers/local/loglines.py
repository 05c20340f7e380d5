"""The kept output of a local run, page by page: ``logs/rank-<r>.log`` and ``logs/node-<k>.log``.

The cursor holds, for every file, how many of its bytes have been read. The files hold bytes as they were printed; lines
are shown as the launcher shows them while the run goes on (entrypoints/cloudtrain_launch/output.py): bytes that are no
UTF-8 as ``\\xNN``, of a progress bar that redraws itself the last state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cloudtrain.providers.port import Cursor, LogLine, LogPage

_PAGE_BYTES = 4 << 20
"""Of all files together, about; each gets its part, so that no rank waits for another."""
_LEAST_BYTES = 16 << 10
_LONGEST_LINE = 256 << 10
"""Bytes after which a line is given out in pieces."""
_NAME = re.compile(r"(rank|node)-([0-9]{1,7})\.log")


def read_page(logs: Path, cursor: Cursor, *, processes: int, over: bool) -> LogPage:
    """What comes behind the cursor, of whole lines; once the run is ``over``, also what has no newline at its end.

    ``processes``: on every node.
    """
    read = {name: at for name, at in cursor.items() if isinstance(at, int)}
    files = list(_files(logs, processes))
    part = min(max(_LEAST_BYTES, _PAGE_BYTES // max(1, len(files))), _LONGEST_LINE)
    lines: list[LogLine] = []
    caught_up = True
    for path, node, rank in files:
        data, more = _read(path, read.get(path.name, 0), part, over)
        read[path.name] = read.get(path.name, 0) + len(data)
        lines += (LogLine(node, rank, text) for text in _shown(data))
        caught_up &= not more
    return LogPage(tuple(lines), read, caught_up)


def _files(logs: Path, processes: int) -> Iterator[tuple[Path, int, int | None]]:
    """Every file with its node and rank, the ranks in their order first."""
    found = []
    for path in logs.iterdir() if logs.is_dir() else ():
        if match := _NAME.fullmatch(path.name):
            found.append((match[1] == "node", int(match[2]), path))
    for is_node, number, path in sorted(found):
        yield (path, number, None) if is_node else (path, number // max(1, processes), number)


def _read(path: Path, start: int, most: int, over: bool) -> tuple[bytes, bool]:
    """Bytes that end where a line does, and whether more that could be given out now lies behind them."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            data = file.read(most)
            full = len(data) == most
            if full and b"\n" not in data:
                data += file.read(_LONGEST_LINE - most)
                full = len(data) >= _LONGEST_LINE
    except OSError:  # not there yet, or not ours to read
        return b"", False
    whole = data[: data.rfind(b"\n") + 1]
    if full:
        return whole or _piece(data), True
    return (data if over else whole), False


def _piece(data: bytes) -> bytes:
    """A line that is too long, cut where no letter is cut."""
    end = len(data)
    while end > len(data) - 4 and data[end - 1] & 0xC0 == 0x80:  # the middle of a letter
        end -= 1
    return data[: end - 1] if data[end - 1] & 0x80 else data


def _shown(data: bytes) -> Iterator[str]:
    text = data.decode("utf-8", "backslashreplace")
    for line in text.split("\n")[: -1 if text.endswith("\n") else None] if text else ():
        states = [part for part in line.rstrip("\r").split("\r") if part]
        yield states[-1] if states else ""
