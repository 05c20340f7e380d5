"""From the files that containers write to, line by line, to the log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cloudtrain.emulator.vertex.logs import EntryLog, text_payload

_BLOCK = 1 << 20


class Tail:
    """One replica's output."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read = 0
        self._rest = b""
        self._last: list[str] = []

    def lines(self, *, to_the_end: bool) -> list[str]:
        """What was written since the last look; a line without its end only ``to_the_end``."""
        found: list[bytes] = []
        try:
            with self._file.open("rb") as output:
                output.seek(self._read)
                while block := output.read(_BLOCK):
                    self._read += len(block)
                    *lines, self._rest = (self._rest + block).split(b"\n")
                    found += lines
        except FileNotFoundError:
            pass
        if to_the_end and self._rest:
            found.append(self._rest)
            self._rest = b""
        texts = [line.decode("utf-8", "replace") for line in found]
        self._last = [*self._last, *texts][-40:]
        return texts

    @property
    def last(self) -> str:
        """The end of it all, as far as it was read."""
        return "\n".join(self._last)


class Tails:
    """Those of all replicas of one start."""

    def __init__(self, files: Sequence[Path], tasks: Sequence[str], log: EntryLog, project: str, job: str) -> None:
        self._tails = {task: Tail(file) for file, task in zip(files, tasks, strict=True)}
        self._log = log
        self._project, self._job = project, job

    def read(self, *, to_the_end: bool = False) -> None:
        """Log what is new."""
        for task, tail in self._tails.items():
            for line in tail.lines(to_the_end=to_the_end):
                self._log.append(self._project, self._job, task, text_payload(line))

    def last(self) -> dict[str, str]:
        """The end of each replica's output."""
        return {task: tail.last for task, tail in self._tails.items()}
