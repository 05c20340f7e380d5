"""``ct.run`` and ``ct.submit``: a run here, or on a cloud, from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

from cloudtrain.errors import SpecError
from cloudtrain.job import Job
from cloudtrain.providers.local.options import Cloud, Device, Engine, Isolation, LocalOptions
from cloudtrain.providers.local.run import run_local
from cloudtrain.record.observer import Observer
from cloudtrain.record.state import State
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
    return Run("local", report["folder"], {}, run_id=report["run_id"], state=State(report["state"]))


def submit(
    job: Job | str | PathLike[str],
    provider: str,
    *,
    settings: Mapping[str, str] | None = None,
    new: bool = False,
    observer: Observer | None = None,
) -> Run:
    """Start a job (or the job file at a path) on ``sagemaker``, ``vertex``, ``azureml``; ``local``: in the background.

    A job that is running there already is not started a second time, except with ``new``: its run is returned.
    ``settings`` win over cloudtrain.toml: ``{"region": "eu-west-1"}``. Does not wait: ``Run.follow``, ``Run.wait``.

    Raises SpecError (JobFileError with all problems) for what is wrong with the job or the settings, MissingError for a
    package, a credential or a setting that is missing, RefusedError if the provider refuses, UnreachableError if it
    does not answer; after that the same call may be made again, and will not start the job twice.
    """
    from cloudtrain.runs.submission import submit as submit_job  # a local run needs nothing of any cloud

    loaded = job if isinstance(job, Job) else Job.load(job)
    return submit_job(loaded, provider, settings=settings, new=new, observer=observer)
