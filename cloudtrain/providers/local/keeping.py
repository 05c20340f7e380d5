"""What a local run's own process writes about it: run.json, the job as it ran, the ledger's entry."""

from __future__ import annotations

import contextlib
import os
import time

from cloudtrain.errors import CloudtrainError
from cloudtrain.job import Job
from cloudtrain.providers.local.options import LocalOptions
from cloudtrain.providers.local.prepare import Ready
from cloudtrain.providers.local.translate import LocalRequest
from cloudtrain.record.folder import RunFolder, write_json
from cloudtrain.record.observer import RunInfo
from cloudtrain.record.state import State


def record(job: Job, options: LocalOptions, ready: Ready, request: LocalRequest, info: RunInfo, started: float) -> None:
    """Write down what is about to run, and from what. What was written when it was submitted is kept. Raises OSError,
    and MissingError, if the disk does not let us."""
    folder = request.places.folder
    before = folder.read_state() if (folder.path / "run.json").exists() else {}
    folder.write_state(
        {
            **before,
            "version": 1,
            "run_id": folder.run_id,
            "name": job.name,
            "provider": "local",
            "as": options.as_,
            "attempt": folder.attempt,
            "state": State.PENDING.value,
            "nodes": info.nodes,
            "processes": info.processes,
            "engine": info.engine,
            "device": info.device,
            "isolation": None,
            "options": options.as_dict(),
            "job_file": str(job.file.absolute()) if job.file else None,
            "checkpoints": str(request.places.checkpoints),
            "outputs": {name: str(place) for name, place in request.places.outputs.items()},
            "resumed_from": ready.earlier.run_id if ready.earlier else None,
            "pid": os.getpid(),
            "started": started,
            "ended": None,
            "exit_code": None,
            "reason": None,
        }
    )
    (folder.path / "job.yaml").write_text(job.dump(), encoding="utf-8")
    write_json(folder.path / "spec.json", request.spec)
    for node in range(info.nodes):
        folder.node(node).mkdir()


def close_state(folder: RunFolder, error: BaseException) -> None:
    """Leave a final state behind: what was written last would say that the run goes on."""
    with contextlib.suppress(CloudtrainError):
        state = folder.read_state()
        if State(state["state"]).is_final:
            return
        if isinstance(error, CloudtrainError):
            final, code, reason = State.FAILED, error.exit_code, error.message
        elif isinstance(error, (KeyboardInterrupt, SystemExit)):
            final, code, reason = State.STOPPED, State.STOPPED.exit_code, "stopped before it had started"
        else:
            final, code, reason = State.FAILED, CloudtrainError.exit_code, f"a fault of cloudtrain: {error!r}"
        folder.write_state({**state, "state": final.value, "exit_code": code, "reason": reason, "ended": time.time()})


def keep(folder: RunFolder) -> None:
    """In the user's ledger, where that can be: ``cloudtrain runs`` shows it then from any folder."""
    from cloudtrain.runs import recording  # SQLite is not needed before

    recording.keep(folder)
