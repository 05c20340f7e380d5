"""The runs of this user: those of the ledger, and those that a project's folder holds and the ledger does not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from cloudtrain.errors import RefusedError, SpecError
from cloudtrain.providers import registry
from cloudtrain.providers.local.port import runs_in
from cloudtrain.providers.local.standing import describe
from cloudtrain.record.folder import RunFolder
from cloudtrain.record.state import State
from cloudtrain.runs.ledger import Entry, Ledger
from cloudtrain.runs.recording import entry_of

_MOST_GOING_ON = 1000
_ATTEMPT = re.compile(r"-a[0-9]+$")


def runs(
    limit: int,
    *,
    provider: str | None = None,
    name: str | None = None,
    state: State | None = None,
    project: Path = Path(),
) -> list[Entry]:
    """The newest first. Local runs are looked at, since that costs nothing; no cloud is asked."""
    with _ledger() as ledger:
        gone = _refresh(ledger) if ledger else {}
        kept = ledger.runs(limit, provider=provider, name=name, state=state) if ledger else []
        found = [gone.get(entry.run_id, entry) for entry in kept]
        if provider in (None, registry.LOCAL):
            others = only_here(project, ledger)
            found += [entry for entry in others if name in (None, entry.name) and state in (None, entry.state)]
    return sorted(found, key=lambda entry: entry.created, reverse=True)[:limit]


def newest(project: Path) -> Entry | None:
    """The newest run of a project, here or on a cloud; without one the newest of all."""
    with _ledger() as ledger:
        of_project = ledger.runs(1, project=str(project.resolve())) if ledger else []
        found = [*of_project, *only_here(project, ledger)] or (ledger.runs(1) if ledger else [])
    return max(found, key=lambda entry: entry.created, default=None)


def only_here(project: Path, ledger: Ledger | None) -> list[Entry]:
    """Runs that lie in a project's folder and that the ledger does not know: of another user, or older than it."""
    entries = []
    for path in runs_in(project):
        ids = {path.name, _ATTEMPT.sub("", path.name)}
        if ledger and any(ledger.entry(run_id) for run_id in ids):
            continue
        try:
            entries.append(entry_of(RunFolder(path)))
        except (RefusedError, SpecError):  # its run.json is broken
            continue
    return entries


def _refresh(ledger: Ledger) -> dict[str, Entry]:
    """Nobody may have looked at a local run since it ended. Returns those that cannot be looked at."""
    gone = {}
    for state in State:
        if state.is_final:
            continue
        for entry in ledger.runs(_MOST_GOING_ON, state=state):  # few, whoever has them
            if entry.provider != registry.LOCAL or not entry.native_id:
                continue
            try:
                seen = describe(Path(entry.native_id))
            except RefusedError:
                reason = f"its folder is not there: {entry.native_id}"
                gone[entry.run_id] = replace(entry, state=State.UNKNOWN, reason=reason)
                continue
            if (seen.state, seen.started) != (entry.state, entry.started):
                ledger.record(entry.run_id, seen)
    return gone


@contextmanager
def _ledger() -> Iterator[Ledger | None]:
    """None where there is none yet: who only reads need not make it."""
    if not Ledger.exists():
        yield None
        return
    with Ledger.open() as ledger:
        yield ledger
