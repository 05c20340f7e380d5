"""The end report of one node: what happened to each rank, what failed first, with which code the node ends."""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import Any

from cloudtrain_launch.failure import Failure, describe_status, root_cause
from cloudtrain_launch.sink import Sink
from cloudtrain_launch.workers import Rank

Report = dict[str, Any]


def build(
    node: int, outcome: str, exit_code: int, started: float, ranks: list[Rank], failures: list[Failure]
) -> Report:
    """``outcome`` is succeeded, failed or preempted. Times are seconds since the epoch."""
    root = root_cause(failures)
    return {
        "version": 1,
        "node": node,
        "outcome": outcome,
        "exit_code": exit_code,
        "started": started,
        "ended": time.time(),
        "root": root.to_message() if root else None,
        "failures": [failure.to_message() for failure in sorted(failures, key=lambda f: f.time)],
        "ranks": [{"rank": r.rank, "status": r.status, "joined": r.joined} for r in ranks],
    }


def trained_apart(outcome: str, ranks: list[Report]) -> bool:
    """True if several ranks ran to their ends without ever meeting: most likely not what was meant."""
    return outcome == "succeeded" and len(ranks) > 1 and not any(rank["joined"] for rank in ranks)


def deliver(report: Report, folder: str | None, sink: Sink) -> None:
    """Say it, hand it to the follower, and write it to ``folder``."""
    if sink.wants_words:
        _say(report, sink)
    _write(report, folder, sink)


FAILURE_CHARACTERS = 1024
"""What SageMaker reads of a failure file."""


def write_failure(path: str, message: str, traceback: str | None = None) -> None:
    """The reason for the platform to show: the message, and as much of the traceback's end as fits behind it.

    A file that is there already is the script's own word, and stays. One that cannot be written must not hide the
    failure itself, which the log has.
    """
    if not path:
        return
    text = message[:FAILURE_CHARACTERS]
    room = FAILURE_CHARACTERS - len(text) - 1
    if traceback and room > 0:
        text += "\n" + traceback.strip()[-room:]
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "x", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)


def _write(report: Report, folder: str | None, sink: Sink) -> None:
    """Hand the report to the follower and put it into ``folder``; a full disk must not hide it from the log."""
    sink.event("report", report=report)
    if not folder:
        return
    path = os.path.join(folder, "report.json")
    try:
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)
        os.replace(path + ".tmp", path)
    except OSError as error:
        sink.line(None, f"the end report could not be written: {error}")


def _say(report: Report, sink: Sink) -> None:
    """The end in words, the first failure and its traceback first."""
    root = report["root"]
    if report["outcome"] == "preempted":
        sink.line(None, "stopped from outside: all ranks were told to stop; continue from the last checkpoint")
    if root and report["outcome"] == "failed":
        sink.line(None, f"failed first: {root['message']}")
        for line in (root["traceback"] or "").splitlines():
            sink.line(None, "  " + line)
    if trained_apart(report["outcome"], report["ranks"]):
        sink.line(None, "no rank joined a process group: each of them trained by itself")
    for rank in report["ranks"]:
        if rank["status"] and report["outcome"] == "failed" and (not root or rank["rank"] != root["rank"]):
            sink.line(None, f"then rank {rank['rank']} {describe_status(rank['status'])}")
    # Whether a machine was taken away or somebody has asked for the end, nobody says in here.
    outcome = "stopped from outside" if report["outcome"] == "preempted" else report["outcome"]
    sink.line(None, f"node {report['node']} {outcome}, exit code {report['exit_code']}")
