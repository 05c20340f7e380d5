"""What the nodes have printed, page by page. The cursor: how many bytes of every node's file have been read."""

from __future__ import annotations

from pathlib import Path

from cloudtrain.providers.loglines import parse
from cloudtrain.providers.port import Cursor, LogLine, LogPage

_PAGE_BYTES = 1 << 20


def page(folder: Path, cursor: Cursor, over: bool) -> LogPage:
    """The next lines of all nodes; of one that goes on whole lines only."""
    lines: list[LogLine] = []
    read, caught_up = dict(cursor), True
    for file in sorted(folder.glob("node-*.log")):
        node = file.stem.removeprefix("node-")
        with file.open("rb") as stream:
            stream.seek(read.get(node, 0))
            data = stream.read(_PAGE_BYTES)
        full = len(data) == _PAGE_BYTES
        if full or not over:
            data = data[: data.rfind(b"\n") + 1]
        read[node] = read.get(node, 0) + len(data)
        caught_up &= not full
        lines += (parse(line, int(node), None) for line in _split(data))
    return LogPage(tuple(lines), read, caught_up)


def _split(data: bytes) -> list[str]:
    text = data.decode("utf-8", "backslashreplace")
    return text.removesuffix("\n").split("\n") if text else []
