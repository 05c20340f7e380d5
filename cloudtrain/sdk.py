"""``ct.run``: a local run from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

from cloudtrain.errors import SpecError
from cloudtrain.job import Job
from cloudtrain.providers.local.options import Cloud, Device, Engine, Isolation, LocalOptions
from cloudtrain.providers.local.run import run_local
from cloudtrain.runs.folder import RunFolder
from cloudtrain.runs.observer import Observer
from cloudtrain.runs.run import Run


def run(
    job: Job | str | PathLike[str],
    *,
    nodes: int | None = None,
    processes: int | None = None,
    args: Sequence[str] = (),
    data: Mapping[str, str | PathLike[str]] | None = None,
    isolation: Isolation = "auto",
    engine: Engine = "auto",
    device: Device = "auto",
    grace: float = 30.0,
    start_timeout: float = 600.0,
    resume: str | None = None,
    as_: Cloud | None = None,
    observer: Observer | None = None,
) -> Run:
    """Train a job (or the job file at a path) here, on ``nodes`` simulated nodes of ``processes`` processes, to its
    end.

    What is None is taken from the job. ``args`` go behind the job's own; ``data`` maps channels to folders; ``grace``
    and ``start_timeout`` are seconds; ``resume`` is an earlier run to continue from. With ``as_`` the job is translated
    for that cloud, and every node finds what it would find there: ``cloudtrain run --as``. Lines and states go to
    ``observer``, by default nowhere; logs are kept in ``Run.folder``.

    Returns the run, whatever its end: see ``Run.status`` and ``Run.raise_if_failed``. Raises SpecError (JobFileError
    with all problems) if the job is wrong, MissingError if torch, a permission or disk space is missing.
    """
    if isinstance(args, str) or not all(isinstance(argument, str) for argument in args):
        raise SpecError(f"args must be a list of texts, not {args!r}")
    options = LocalOptions(
        nodes=nodes,
        processes=processes,
        args=tuple(args),
        data={name: Path(path) for name, path in (data or {}).items()},
        isolation=isolation,
        engine=engine,
        device=device,
        grace=grace,
        start_timeout=start_timeout,
        resume=resume,
        as_=as_,
    )
    loaded = job if isinstance(job, Job) else Job.load(job)
    report = run_local(loaded, options, observer or Observer())
    return Run(RunFolder(Path(report["folder"])))
