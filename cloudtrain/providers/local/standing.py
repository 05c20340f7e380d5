"""How a local run stands, read from its folder by any process: run.json, the lock, the end report."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Any

from cloudtrain.errors import NotFoundError, SpecError
from cloudtrain.providers.port import Cause, Description
from cloudtrain.record.folder import RunFolder, read_json
from cloudtrain.record.state import State
from cloudtrain.wording import printable

CUT_OFF = "the process that ran it ended before the run did"
_HANDOVER_SECONDS = 1.0


def state_of(folder: RunFolder) -> tuple[State, dict[str, Any]]:
    """The state now, and what run.json says. A run that goes on by its file and that nobody follows was cut off.

    Raises SpecError if the folder is no run's.
    """
    data = folder.read_state()
    state = _state(data)
    if state.is_final or state is State.UNKNOWN or _is_followed(folder, data):
        return state, data
    data = folder.read_state()  # it may have ended between the two looks
    state = _state(data)
    return (state, data) if state.is_final else (State.FAILED, {**data, "reason": CUT_OFF})


def _is_followed(folder: RunFolder, data: dict[str, Any]) -> bool:
    """Whether anybody has the lock. When the run's process dies, the one that holds its nodes takes it over, so where
    there still are nodes it is given the time to."""
    pids = data.get("node_pids")
    end = time.monotonic() + _HANDOVER_SECONDS
    while not folder.is_followed():
        if time.monotonic() > end or not any(map(_is_alive, pids if isinstance(pids, list) else ())):
            return False
        time.sleep(0.02)
    return True


def _is_alive(pid: object) -> bool:
    if not _whole(pid):
        return False
    try:
        os.kill(_whole(pid), 0)
    except (OSError, OverflowError):  # gone, or a number that somebody else has now
        return False
    return True


def describe(path: Path) -> Description:
    """The run in a folder. Raises NotFoundError if there is none."""
    folder = RunFolder(path)
    try:
        state, data = state_of(folder)
    except SpecError as error:
        raise NotFoundError(f"there is no run in {path}", hint=error.message) from error
    reason = _text(data.get("reason"))
    return Description(
        provider="local",
        native_id=str(path),
        name=path.name,
        state=state,
        vendor_state=_text(data.get("state")),
        reason=reason,
        cause=_cause(folder, state, data),
        run_id=_text(data.get("run_id")) or path.name,
        attempt=_whole(data.get("attempt")) or 1,
        fingerprint=_text(data.get("fingerprint")),
        created=_seconds(data.get("submitted")) or _seconds(data.get("started")),
        started=_seconds(data.get("started")),
        ended=_seconds(data.get("ended")),
        nodes=_whole(data.get("nodes")),
        policy=_text(data.get("policy")),
        exit_code=code if state.is_final and isinstance(code := data.get("exit_code"), int) else None,
    )


_OURS = ("launcher", "fault", "not-started", "start-timeout")


def _cause(folder: RunFolder, state: State, data: dict[str, Any]) -> Cause:
    by_state: dict[State, Cause] = {State.TIMED_OUT: "timeout", State.PREEMPTED: "preempted"}
    if state is not State.FAILED:
        return by_state.get(state, "")
    if data.get("reason") == CUT_OFF:
        return "infrastructure"
    kind = None
    with contextlib.suppress(SpecError):  # it ended before it had anything to report
        root = read_json(folder.report).get("root")
        kind = root.get("kind") if isinstance(root, dict) else None
    if kind is None:
        return "invalid" if data.get("exit_code") == SpecError.exit_code else "infrastructure"
    return "node-lost" if kind == "node-lost" else "infrastructure" if kind in _OURS else "user-code"


def _state(data: dict[str, Any]) -> State:
    try:
        return State(data.get("state"))
    except ValueError:
        return State.UNKNOWN


def _text(value: object) -> str:
    """As a terminal may show it: what a rank died with may hold anything."""
    if not isinstance(value, str):
        return ""
    return printable(value.replace("\n", " "))


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _seconds(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
