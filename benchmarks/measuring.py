"""The clock: whole processes, in turns, and the ratio of each to the first of its round."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile


@dataclass(frozen=True)
class Command:
    """One process to start."""

    argv: Sequence[str]
    cwd: Path | None = None
    env: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Cost:
    """What running one or more commands took."""

    wall: float
    """Seconds from the first start to the last end."""
    cpu: float
    """Seconds of processor time, of children waited for as well."""


Subject = Callable[[], float]
"""Does something once and returns what is compared: seconds, or a rate."""


@dataclass(frozen=True)
class Row:
    """One claim, measured."""

    name: str
    what: str
    ratios: Sequence[float]
    """One per round: the subject over the base, both of that round."""
    subject: float
    """Median of the subject, in ``unit``."""
    base: float
    unit: str
    bound: float | None = None
    """What the README promises; None for rows that are there for comparison."""
    at_least: bool = False
    """The bound is a lower one."""

    @classmethod
    def of(
        cls,
        name: str,
        what: str,
        measured: Mapping[str, Sequence[float]],
        subject: str,
        base: str,
        *,
        unit: str,
        bound: float | None = None,
        at_least: bool = False,
    ) -> Row:
        """The row that compares two of what ``in_turns`` has measured, round by round."""
        ratios = [a / b for a, b in zip(measured[subject], measured[base], strict=True)]
        return cls(name, what, ratios, median(measured[subject]), median(measured[base]), unit, bound, at_least)

    @property
    def ratio(self) -> float:
        """Median of the pairs' ratios."""
        return median(self.ratios)

    @property
    def holds(self) -> bool:
        """Whether the ratio is within its bound; true without one."""
        if self.bound is None:
            return True
        return self.ratio >= self.bound if self.at_least else self.ratio <= self.bound


class CommandFailed(Exception):
    """A measured command did not end with 0, so its time says nothing."""


def run(*commands: Command) -> Cost:
    """Start all commands at once and wait for all. Raises CommandFailed with the output of the first that fails."""
    with TemporaryFile() as output:
        started = time.perf_counter()
        processes = [
            subprocess.Popen(c.argv, cwd=c.cwd, env=c.env, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            for c in commands
        ]
        cpu = 0.0
        for process, command in zip(processes, commands, strict=True):
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            cpu += usage.ru_utime + usage.ru_stime
            if process.returncode:
                output.seek(0)
                said = output.read().decode(errors="replace")
                raise CommandFailed(f"{' '.join(command.argv)} ended with {process.returncode}:\n{said}")
        return Cost(time.perf_counter() - started, cpu)


def wall(*commands: Command) -> Subject:
    """The subject "seconds until these have ended"."""
    return lambda: run(*commands).wall


def in_turns(subjects: Mapping[str, Subject], rounds: int, warm_up: bool = True) -> dict[str, list[float]]:
    """Measure every subject once per round, every other round backwards, so that a drift of the machine's load falls
    on all alike. The warm-up round fills caches and is not counted."""
    if warm_up:
        for subject in subjects.values():
            subject()
    measured: dict[str, list[float]] = {name: [] for name in subjects}
    for number in range(rounds):
        for name in list(subjects) if number % 2 == 0 else list(subjects)[::-1]:
            measured[name].append(subjects[name]())
    return measured
