"""The runs of this user: those of the ledger, and those that a project's folder holds and the ledger does not."""

from __future__ import annotations

from pathlib import Path

from cloudtrain.errors import RefusedError, SpecError
from cloudtrain.providers import registry
from cloudtrain.providers.local.port import runs_in
from cloudtrain.providers.local.standing import describe
from cloudtrain.runs.folder import RunFolder
from cloudtrain.runs.ledger import Entry, Ledger
from cloudtrain.runs.recording import entry_of
from cloudtrain.runs.state import State

_MOST = 100_000


def runs(
    limit: int,
    *,
    provider: str | None = None,
    name: str | None = None,
    state: State | None = None,
    project: Path = Path(),
) -> list[Entry]:
    """The newest first. Local runs are looked at, since that costs nothing; no cloud is asked."""
    found: list[Entry] = []
    known: set[str] = set()
    if Ledger.exists():
        with Ledger.open() as ledger:
            _refresh(ledger)
            found = ledger.runs(limit, provider=provider, name=name, state=state)
            here = ledger.runs(_MOST, provider=registry.LOCAL, project=str(project.resolve()))
            known = {entry.run_id for entry in here}
    if provider in (None, registry.LOCAL):
        others = (entry for entry in _of_project(project) if entry.run_id not in known)
        found += [entry for entry in others if name in (None, entry.name) and state in (None, entry.state)]
    return sorted(found, key=lambda entry: entry.created, reverse=True)[:limit]


def _refresh(ledger: Ledger) -> None:
    """Nobody may have looked at a local run since it ended."""
    for state in State:
        if state.is_final:
            continue
        for entry in ledger.runs(_MOST, provider=registry.LOCAL, state=state):
            if entry.native_id:
                _look(ledger, entry)


def _look(ledger: Ledger, entry: Entry) -> None:
    try:
        seen = describe(Path(entry.native_id))
    except RefusedError:
        ledger.fail(entry.run_id, entry.attempt, "its folder was removed", "")
        return
    if (seen.state, seen.started) != (entry.state, entry.started):
        ledger.record(entry.run_id, seen)


def _of_project(project: Path) -> list[Entry]:
    entries = []
    for path in runs_in(project):
        try:
            entries.append(entry_of(RunFolder(path)))
        except (RefusedError, SpecError):  # its run.json is broken
            continue
    return entries
