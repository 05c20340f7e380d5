"""What ``submit --provider local`` asks for: a run on this machine that goes on by itself, in the background.

The request is plain data, like that of a cloud. All that the run needs beside it is here: the code, which is copied
into the run's folder when it starts, and the shell's variables, which its process inherits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloudtrain.errors import SpecError
from cloudtrain.job import Job
from cloudtrain.providers.base import Request
from cloudtrain.providers.identity import fingerprint, native_name
from cloudtrain.providers.local.options import LocalOptions
from cloudtrain.providers.local.prepare import check_here
from cloudtrain.providers.local.translate import check
from cloudtrain.providers.nodes import policy
from cloudtrain.record.folder import RUNS, RunFolder

if TYPE_CHECKING:
    from cloudtrain.providers.base import Context


def translate(job: Job, context: Context) -> Request:
    """The request for one attempt. Every attempt has a folder of its own; code and checkpoints are those of the first.

    Raises SpecError for what a local run cannot do or does not find here, MissingError for a secret that is not set.
    """
    runs = job.folder.absolute() / RUNS
    first = None if context.attempt == 1 else _first(runs, context.run_id)
    options = options_of(first)
    check(job, options)
    check_here(job, options)
    name = native_name(context.run_id, context.attempt)
    native: dict[str, Any] = {
        "run_id": context.run_id,
        "attempt": context.attempt,
        "folder": str(runs / name),
        "first": str(first) if first else None,
        "nodes": options.nodes or job.resources.nodes,
        "processes": options.processes or job.processes,
        "bundle": context.bundle,
        "policy": policy(job),
        "job_file": str(job.file.absolute()) if job.file else None,
        "job": json.loads(json.dumps(job.given())),
    }
    native["fingerprint"] = fingerprint(native, {})
    return Request("local", name, native, {}, (), account={"project": str(job.folder.absolute())})


def _first(runs: Path, run_id: str) -> Path:
    """The folder of the first attempt; ``cloudtrain run`` calls it as the run."""
    alone = runs / run_id
    return alone if alone.is_dir() else runs / native_name(run_id, 1)


def options_of(first: Path | None) -> LocalOptions:
    """What ``cloudtrain run`` was given besides the job, where that was how the run began. Raises SpecError where a
    further attempt cannot be made."""
    if first is None:
        return LocalOptions()
    options = LocalOptions.of(RunFolder(first).read_state().get("options") or {})
    if options.as_:
        again = f"cloudtrain run ... --as {options.as_} --resume {first.name}"
        raise SpecError(f"run {first.name} went through the contract of {options.as_}", hint=f"go on with: {again}")
    return options


def job_of(native: Mapping[str, Any]) -> Job:
    """The job that a request was made from, its paths seen from where they were; of a further attempt with the code
    that the first one ran."""
    job = Job.model_validate(native["job"])
    if native["first"]:
        job = job.with_(code=str(Path(native["first"], "code")))
    return Job.parse(job.dump(), native["job_file"] or Path(native["folder"]).parents[2] / "job.yaml")
