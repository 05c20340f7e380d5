"""The end report of a run: its state, what failed first, where everything lies. Written to ``report.json``.

Put together from the nodes' own end reports (entrypoints/cloudtrain_launch/report.py) and from how their launchers
ended: a launcher that was killed has written none.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from cloudtrain.record.folder import RunFolder
from cloudtrain.record.state import State

Report = dict[str, Any]
NodeReports = Mapping[int, Report]
NOT_STARTED = 124


def final_state(stopped_by: str | None, statuses: Mapping[int, int], reports: NodeReports, fault: str | None) -> State:
    """The state a run ended in.

    ``stopped_by`` is SIGINT, SIGTERM, Run.stop, runtime or None; ``statuses`` are the launchers'.
    """
    if fault:
        return State.FAILED
    if statuses and all(status == 0 for status in statuses.values()):
        return State.SUCCEEDED
    if any(report["outcome"] == "failed" and report["root"]["kind"] != "node-lost" for report in reports.values()):
        return State.FAILED  # it had failed before it was stopped
    if stopped_by:
        return {"SIGTERM": State.PREEMPTED, "runtime": State.TIMED_OUT}.get(stopped_by, State.STOPPED)
    if any(report["outcome"] == "preempted" for report in reports.values()):
        return State.PREEMPTED
    return State.FAILED


def build(
    folder: RunFolder,
    *,
    state: State,
    started: float,
    statuses: Mapping[int, int],
    reports: NodeReports,
    fault: str | None,
    metrics: Mapping[str, Any],
    stopped_by: str | None,
    isolation: str | None,
    device: str,
    as_: str | None = None,
) -> Report:
    """The report of a run that is over. Times are seconds since the epoch; ``metrics`` are the last known values;
    ``as_`` is the cloud whose contract the run went through."""
    root = root_failure(statuses, reports, fault) if state is State.FAILED else None
    return {
        "version": 1,
        "run_id": folder.run_id,
        "provider": "local",
        "as": as_,
        "state": state.value,
        "exit_code": 5 if fault else state.exit_code,
        "stopped_by": stopped_by,
        "isolation": isolation,
        "device": device,
        "started": started,
        "ended": time.time(),
        "seconds": round(time.time() - started, 3),
        "root": root,
        "nodes": [
            {"node": node, "status": status, "outcome": reports[node]["outcome"] if node in reports else None}
            for node, status in sorted(statuses.items())
        ],
        "ranks": [rank for _, report in sorted(reports.items()) for rank in report["ranks"]],
        "failures": all_failures(reports),
        "metrics": dict(metrics),
        "folder": str(folder.path),
        "logs": str(folder.logs),
        "model": str(folder.model),
    }


def all_failures(reports: NodeReports) -> list[Report]:
    """Every failure any node heard of, once, the earliest first."""
    found: dict[tuple[Any, ...], Report] = {}
    for report in reports.values():
        for failure in report["failures"]:
            found.setdefault((failure["kind"], failure["node"], failure["rank"], failure["message"]), failure)
    return sorted(found.values(), key=lambda failure: float(failure["time"]))


def root_failure(statuses: Mapping[int, int], reports: NodeReports, fault: str | None) -> Report | None:
    """What to lead with: a fault of ours, a launcher that was killed, else the cause that the nodes agreed on."""
    if fault:
        return _failure("fault", None, f"cloudtrain's host process failed: {fault.strip().splitlines()[-1]}", fault)
    roots: list[Report] = [report["root"] for report in reports.values() if report["root"]]
    roots.sort(key=lambda root: (root["kind"] in ("node-lost", "launcher"), root["time"]))
    # A killed launcher reports nothing; the others only see that it is lost.
    killed = [(node, status) for node, status in sorted(statuses.items()) if status < 0 and node not in reports]
    if killed and all(root["kind"] == "node-lost" for root in roots):
        node, status = killed[0]
        return _failure("node-lost", node, f"node {node}: its launcher was killed by {signal_name(-status)}")
    if roots:
        return roots[0]
    failed = [(node, status) for node, status in sorted(statuses.items()) if status]
    if failed:
        node, status = failed[0]
        text = f"node {node}: its launcher ended with {status} and without a report; see logs/node-{node}.log"
        return _failure("launcher", node, text)
    return _failure("launcher", None, "no node was started")


def signal_name(number: int) -> str:
    """``SIGKILL``, or ``signal 40`` for one without a name."""
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _failure(kind: str, node: int | None, message: str, traceback: str | None = None) -> Report:
    return {
        "kind": kind, "node": node, "rank": None, "status": None, "message": message, "traceback": traceback,
        "time": time.time(),
    }  # fmt: skip
