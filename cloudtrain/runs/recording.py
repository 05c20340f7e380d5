"""Local runs in the ledger, from what their folders say: so that they are found from any other folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cloudtrain.errors import CloudtrainError
from cloudtrain.providers.local.standing import describe
from cloudtrain.record.folder import RunFolder
from cloudtrain.runs.ledger import Entry, Ledger

_PATIENCE_SECONDS = 1.0


def keep(folder: RunFolder) -> bool:
    """Keep how the run stands. Whether that was possible: a run does not need it, and does not wait for it long."""
    try:
        seen = describe(folder.path)
        with Ledger.open(patience=_PATIENCE_SECONDS) as ledger:
            if ledger.entry(seen.run_id) is None:
                ledger.begin(entry_of(folder), {}, _plan_of(folder))
            ledger.record(seen.run_id, seen)
    except CloudtrainError:
        return False
    return True


def entry_of(folder: RunFolder) -> Entry:
    """The run as the ledger has it. Raises RefusedError if the folder is no run's."""
    seen = describe(folder.path)
    data = folder.read_state()
    return Entry(
        run_id=seen.run_id,
        provider=seen.provider,
        name=str(data.get("name")),
        family=seen.run_id,
        project=str(_project(folder)),
        attempt=seen.attempt,
        native_name=seen.name,
        native_id=seen.native_id,
        account={"project": str(_project(folder))},
        created=seen.created or 0.0,
        state=seen.state,
        vendor_state=seen.vendor_state,
        reason=seen.reason,
        cause=seen.cause,
        nodes=seen.nodes,
        started=seen.started,
        ended=seen.ended,
    )


def _plan_of(folder: RunFolder) -> dict[str, Any]:
    """What a further attempt is made from."""
    data = folder.read_state()
    try:
        job = (folder.path / "job.yaml").read_text(encoding="utf-8")
    except OSError:
        return {}
    return {
        "job": job,
        "job_file": data.get("job_file") or str(_project(folder) / "job.yaml"),
        "settings": {},
        "bundle": str(data.get("bundle") or ""),
        "entrypoints": "",
        "processes": data.get("processes"),
    }


def _project(folder: RunFolder) -> Path:
    return folder.path.parents[2]
