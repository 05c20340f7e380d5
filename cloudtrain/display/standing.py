"""How a run stands, in words: its state, what it ended of, and what to do next."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cloudtrain.display.summary import shown
from cloudtrain.display.times import moment, span
from cloudtrain.record.state import State
from cloudtrain.wording import printable

if TYPE_CHECKING:
    from cloudtrain.runs.status import RunStatus

_ADVICE = {
    "capacity": "the service had no such machine: resume later, or name another resources.instance or region",
    "quota": "ask the service for more quota, or take a machine that you have quota for: cloudtrain catalog instances",
    "timeout": "it goes on from its last checkpoint for as long again; or raise limits.runtime and submit",
    "preempted": "its machines were taken away; it goes on from its last checkpoint",
    "node-lost": "a machine was lost; it goes on from its last checkpoint",
    "infrastructure": "no fault of the script is known; it goes on from its last checkpoint",
    "image": "see whether environment.image exists, and whether the job may pull it",
    "data": "see whether the places under data: exist, and whether the job may read them",
    "permission": "give the job's role or account the right that the reason names",
    "invalid": "mend what the reason names, and submit again",
}
_MOST_SHOWN = {"ending": 300, "status": 2000, "table": 120}
"""Characters of a reason: some services put the last lines of a log into it. JSON has all of it."""
_FIRST = re.compile(r"\[\d+/-\] failed first: (.+?)(?= \[\d+/(?:-|\d+)\] |$)")
"""What a launcher has said of the first failure, in the last lines of a node's output."""
_NO_RESUME = ("invalid", "image")
"""The same request would end the same way."""


def standing(status: RunStatus, name: str, steps: bool = True) -> Iterator[str]:
    """All that is known of it; ``name`` is what the user calls it, for the commands shown."""
    yield _line(f"run {status.run_id} on {_where(status)}: {_state(status)}")
    rows = {
        "reason" if status.state.is_final else "now": short(status.reason or "", "status"),
        "cause": status.cause,
        "attempt": f"{status.attempt}; before it: {_before(status)}" if status.attempt > 1 else "",
        "restarts": f"{status.restarts}, by the service" if status.restarts else "",
        "nodes": str(status.nodes or ""),
        "job" if status.provider != "local" else "folder": _native(status),
        "url": status.url,
        "created": moment(status.created),
        "started": moment(status.started),
        "ended": f"{moment(status.ended)}, after {span(took)}" if (took := _took(status)) and status.ended else "",
    }
    yield from (_row(key, text) for key, text in rows.items() if text not in ("", "-"))
    if steps:
        yield from next_steps(status, name)


def ending(status: RunStatus, name: str) -> Iterator[str]:
    """The end of a run that was followed: what it ended of, then what to do next."""
    if status.reason:
        yield f"{'failed' if status.state is State.FAILED else 'reason'}: {short(status.reason, 'ending')}"
    took = _took(status)
    after = f" after {span(took)}" if took is not None else ""
    yield f"{status.state}{after}, exit code {status.exit_code}"
    yield from next_steps(status, name)


def next_steps(status: RunStatus, name: str) -> Iterator[str]:
    """What can be done now, as commands."""
    if not status.state.is_final:
        yield _row("follow", f"cloudtrain logs {name} --follow")
        yield _row("stop", f"cloudtrain stop {name}")
        return
    if status.state is State.SUCCEEDED:
        yield _row("results", f"cloudtrain download {name}")
        return
    yield _row("logs", f"cloudtrain logs {name}")
    if advice := _ADVICE.get(status.cause):
        yield _row("next", advice)
    if status.cause not in _NO_RESUME:
        yield _row("go on", f"cloudtrain resume {name}")


def short(reason: str, where: str) -> str:
    """A reason as it is shown: on one line, and its beginning only where it is long. Of the output that some services
    quote from its beginning, the line that says what failed first."""
    text, most = _line(reason), _MOST_SHOWN[where]
    if first := _FIRST.search(text):
        text = first.group(1)
    return text if len(text) <= most else f"{text[:most]} ..."


def _before(status: RunStatus) -> str:
    return f"cloudtrain logs {status.run_id} --attempt {status.attempt - 1}"


def _where(status: RunStatus) -> str:
    return "this machine" if status.provider == "local" else status.provider


def _state(status: RunStatus) -> str:
    """With the service's own words where they say more."""
    words = status.vendor_state
    return f"{status.state} ({words})" if words and words != status.state.value else str(status.state)


def _native(status: RunStatus) -> str:
    return shown(Path(status.native_id)) if status.provider == "local" else status.native_id


def _took(status: RunStatus) -> float | None:
    began = status.started or status.created
    if began is None:
        return None
    return (status.ended or time.time()) - began


def _row(key: str, text: str) -> str:
    return _line(f"  {key:<8} {text}")


def _line(text: str) -> str:
    """What comes from a service may hold anything."""
    return printable(" ".join(text.split("\n")))
