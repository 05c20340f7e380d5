"""The words before and after a run."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from cloudtrain.record.observer import RunInfo
from cloudtrain.wording import printable

_LONG_TRACEBACK = 40


def heading(info: RunInfo) -> str:
    """``run digits-...: 2 nodes x 2 processes on CPU``, ``run digits-... on vertex: 2 nodes x 2 processes``."""
    parts = [_several(info.nodes, "node", "nodes"), _several(info.processes, "process", "processes")]
    machines = " x ".join(part for part in parts if part)
    if info.provider != "local":
        return f"run {info.run_id} on {info.provider}" + (f": {machines}" if machines else "")
    return f"run {info.run_id}: {machines}" + (f" on {info.device}" if info.device else "")


def _several(number: int, one: str, many: str) -> str:
    """ "" for 0: it is not known."""
    return "" if not number else f"1 {one}" if number == 1 else f"{number} {many}"


def unknown_ranks(info: RunInfo, ranks: Collection[int] | None) -> Iterator[str]:
    """What to say of ranks that are to be shown and do not exist."""
    beyond = sorted(rank for rank in ranks or () if rank >= info.ranks)
    if beyond and info.ranks:
        yield f"--ranks: there is no rank {', '.join(map(str, beyond))}; the ranks are 0 to {info.ranks - 1}"


def ending(report: dict[str, Any]) -> Iterator[str]:
    """The end of a run, the first failure and its traceback first, then where everything lies."""
    return (printable(line) for line in _ending(report))


def _ending(report: dict[str, Any]) -> Iterator[str]:
    root = report["root"]
    if _trained_apart(report):
        yield f"warning: no rank joined a process group: each of the {len(report['ranks'])} trained by itself"
    if root:
        yield f"failed first: {root['message']}"
        yield from _indented(root["traceback"] or _last_words(report, root))
        yield from _others(report, root)
    if not root:
        for failure in report["failures"]:
            yield f"while stopping: {failure['message'].splitlines()[0]}"
    yield f"{report['state']} after {report['seconds']:.1f} s, exit code {report['exit_code']}"
    if report["stopped_by"] or report["state"] == "PREEMPTED":
        yield f"  {'go on':<8} cloudtrain resume {report['run_id']} --follow"
    for name in ("logs", "model"):
        if name == "logs" or _holds_anything(Path(report[name])):
            yield f"  {name:<8} {shown(report[name])}"
    metrics = Path(report["folder"]) / "metrics"
    if _holds_anything(metrics):
        yield f"  metrics  {shown(metrics)}"


def _holds_anything(folder: Path) -> bool:
    try:
        return any(folder.iterdir())
    except OSError:
        return False


def _trained_apart(report: dict[str, Any]) -> bool:
    ranks = report["ranks"]
    return report["state"] == "SUCCEEDED" and len(ranks) > 1 and not any(rank["joined"] for rank in ranks)


def shown(path: str | Path) -> str:
    """A path as short as it can be written from here."""
    try:
        relative = os.path.relpath(path)
    except (ValueError, OSError):  # another drive on Windows; a current folder that was removed
        return str(path)
    return relative if not relative.startswith("..") else str(path)


def _last_words(report: dict[str, Any], root: dict[str, Any]) -> str:
    """The last lines of a rank that left without an error to show: an argument parser's complaint, say."""
    try:
        with (Path(report["logs"]) / f"rank-{root['rank']}.log").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 2000))
            return "\n".join(file.read().decode("utf-8", "backslashreplace").splitlines()[-6:])
    except OSError:
        return ""


def _indented(traceback: str | None) -> Iterator[str]:
    lines = (traceback or "").splitlines()
    if len(lines) > _LONG_TRACEBACK:
        lines = [*lines[: _LONG_TRACEBACK // 2], "...", *lines[-_LONG_TRACEBACK // 2 :]]
    yield from (f"    {line}" for line in lines)


def _others(report: dict[str, Any], root: dict[str, Any]) -> Iterator[str]:
    others = [failure for failure in report["failures"] if failure["message"] != root["message"]]
    for failure in others[:4]:
        yield f"then: {failure['message'].splitlines()[0]}"
    if len(others) > 4:
        yield f"then: {len(others) - 4} more, see report.json"
