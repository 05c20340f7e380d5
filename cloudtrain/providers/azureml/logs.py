"""Log lines of all nodes, from the files that the run history lists.

    user_logs/std_log.txt                   one node
    user_logs/std_log_process_0.txt, _1, _00 ...   one process for each node: the number is the node's
    user_logs/retry_001/...                 a later start of the same job

Each file is read on from where the last page ended, whole lines only. What lies just before that place is read again
and compared: where it is not what was read, the file is another one (a restart has begun it anew), and is read from
its beginning. The addresses come anew with every page, so none gets too old.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from cloudtrain.providers.azureml.calls import Caller
from cloudtrain.providers.azureml.describing import RETRY
from cloudtrain.providers.loglines import parse
from cloudtrain.providers.port import Cursor, LogLine, LogPage
from cloudtrain.providers.reading import section

_FILE = rf"(?:{RETRY}|user_logs/)std_log(?:_(?:process_)?(?P<node>[0-9]{{1,5}}))?\.txt"
_PIECE = 1 << 20
"""Bytes of a file in one page; a line that is longer is cut."""
_MARK = 64
"""Bytes before the place that are compared."""


class LogFile(NamedTuple):
    """One of a job's log files; they are read in this order."""

    start: int
    """0 for the first start of the job."""
    node: int
    name: str
    url: str


class Mark(NamedTuple):
    """How far a file has been read."""

    offset: int = 0
    before: str = ""
    """Digest of the bytes before."""
    rest: int = 0
    """Bytes of a last line without its end, when the job was seen to be over."""


def log_files(details: Mapping[str, Any]) -> list[LogFile]:
    """The files of the nodes' output among all that are listed."""
    found = []
    for name, url in section(details, "logFiles").items():
        match = re.fullmatch(_FILE, name)
        if match and isinstance(url, str):
            found.append(LogFile(int(match[1] or 0), int(match["node"] or 0), name, url))
    return sorted(found)


def page(caller: Caller, details: Mapping[str, Any], cursor: Cursor, *, over: bool) -> LogPage:
    """The next lines. ``over``: the job has ended, so that a last line without an end is one."""
    marks = {str(name): Mark(*mark) for name, mark in section(cursor, "files").items()}
    lines: list[LogLine] = []
    caught_up = True
    for file in log_files(details):
        part = _read(caller, file, marks.get(file.name, Mark()), over)
        lines += part.lines
        marks[file.name] = part.mark
        caught_up = caught_up and part.caught_up
    return LogPage(tuple(lines), {"files": {name: list(mark) for name, mark in marks.items()}}, caught_up)


class _Part(NamedTuple):
    lines: list[LogLine]
    mark: Mark
    caught_up: bool


def _read(caller: Caller, file: LogFile, mark: Mark, over: bool) -> _Part:
    """What has been added to one file."""
    overlap = min(mark.offset, _MARK)
    first = mark.offset - overlap
    content, size = caller.part(file.url, first, overlap + _PIECE, f"read {file.name}")
    if mark.offset and _digest(content[:overlap]) != mark.before:
        if not content and size == 0:  # not there at this moment, or emptied to be begun anew
            return _Part([], mark, caught_up=True)
        return _read(caller, file, Mark(), over)
    fresh = content[overlap:]
    full = len(fresh) == _PIECE
    whole = fresh[: fresh.rfind(b"\n") + 1] or (fresh if full else b"")
    rest = len(fresh) - len(whole)
    if over and not full and rest and rest == mark.rest:  # seen twice, so nobody is writing it
        whole, rest = fresh, 0
    end = mark.offset + len(whole)
    before = (content[:overlap] + whole)[-_MARK:]
    now = Mark(end, _digest(before) if end else "", rest if over and not full else 0)
    return _Part([parse(text, file.node, None) for text in _texts(whole)], now, not full and not now.rest)


def _texts(whole: bytes) -> Iterator[str]:
    """Lines as text. Only a newline ends one: a progress bar's carriage returns are part of it."""
    lines = whole.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return (line.decode("utf-8", "backslashreplace") for line in lines)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
