"""Questions side by side. None may take for ever, and whatever one of them raises is a line like others.

Threads that are still waiting when the time is over are left behind: they are daemons, which end with the process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from cloudtrain.providers.questions import LATER, Check, Question, of_error

T = TypeVar("T")

SECONDS = 20.0
"""For each of the steps: signing in, then all questions at once."""


class _Task(threading.Thread, Generic[T]):
    """One question, and its answer or what it raised."""

    def __init__(self, ask: Callable[[], T]) -> None:
        super().__init__(daemon=True)
        self._ask = ask
        self.answer: T | None = None
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.answer = self._ask()
        except Exception as error:  # noqa: BLE001 - a broken answer can raise anything, and must not end the others
            self.error = error


def together(asks: Mapping[str, Callable[[], T]], seconds: float = SECONDS) -> dict[str, T | Exception]:
    """All answers, or what was raised instead; TimeoutError for those that have not come in time."""
    tasks = {name: _Task(ask) for name, ask in asks.items()}
    end = time.monotonic() + seconds
    for task in tasks.values():
        task.start()
    found: dict[str, T | Exception] = {}
    for name, task in tasks.items():
        task.join(max(0.0, end - time.monotonic()))
        if task.is_alive():
            found[name] = TimeoutError(f"no answer within {seconds:g} s")
        else:
            found[name] = task.error if task.error is not None else task.answer  # type: ignore[assignment]
    return found


def answered(questions: Sequence[Question], missing: Sequence[str], seconds: float = SECONDS) -> list[Check]:
    """The lines of all questions, in their order. ``missing``: settings that nobody gave."""
    able = {question.name: question.ask for question in questions if not set(question.needs) & set(missing)}
    answers = together(able, seconds)
    return [_line(question, answers.get(question.name), missing) for question in questions]


def late(name: str, error: Exception) -> Check:
    """The line of an error, of one that says that the time was over, too."""
    if isinstance(error, TimeoutError):
        return Check(name, "problem", str(error) or "no answer in time", LATER)
    return of_error(name, error)


def _line(question: Question, answer: Check | Exception | None, missing: Sequence[str]) -> Check:
    if answer is None:
        return Check(question.name, "not checked", f"not set: {', '.join(n for n in question.needs if n in missing)}")
    return late(question.name, answer) if isinstance(answer, Exception) else answer
