"""A local run from the job to its end report.

    host process started -> folder -> code staged -> request -> nodes -> followed -> report

If this process dies after the host process was started, that one stops the nodes; if it dies earlier, nothing runs.
The run's folder then keeps the last state written, and a free lock, by which readers tell that the run was cut off.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from cloudtrain.bundle import explain, scan, stage
from cloudtrain.errors import MissingError, SpecError
from cloudtrain.job import Job
from cloudtrain.providers.local.client import HostProcess, host_for
from cloudtrain.providers.local.devices import visible_gpus
from cloudtrain.providers.local.follow import Follower
from cloudtrain.providers.local.options import LocalOptions
from cloudtrain.providers.local.translate import (
    LocalRequest,
    Machine,
    check,
    data_folder,
    needs_fresh_interpreter,
    translate,
)
from cloudtrain.runs import report
from cloudtrain.runs.folder import RunFolder, cannot_write, new_run_id, write_json
from cloudtrain.runs.observer import Observer, RunInfo
from cloudtrain.runs.state import State
from cloudtrain.spec.problems import JobFileError

OnStart = Callable[[Follower], None]


def run_local(
    job: Job,
    options: LocalOptions,
    observer: Observer,
    *,
    host: HostProcess | None = None,
    on_start: OnStart = lambda _: None,
) -> report.Report:
    """Train ``job`` here and return the end report.

    ``on_start`` gets the follower, by which the run can be stopped. Raises SpecError, JobFileError and MissingError
    before anything has run; a job that fails is a report, not an exception. Takes over ``host``.
    """
    host = host or host_for(options)
    try:
        check_job(job, options)
        fresh = needs_fresh_interpreter(job)
        if fresh:
            host.discard()
            host = host_for(options, fresh)
        return _run(job, options, observer, host, on_start)
    finally:
        host.close()


def check_job(job: Job, options: LocalOptions) -> None:
    """Everything that can be found wrong before a folder is made. Raises JobFileError, SpecError or MissingError."""
    check(job, options)
    problems = job.check_files()
    if problems:
        raise JobFileError(problems)
    for name in job.data:
        path = data_folder(job, name, options.data)
        if not path.exists():
            raise SpecError(f"data.{name}: {path} is not there", hint=f"put the data there, or give --data {name}=PATH")


def _run(job: Job, options: LocalOptions, observer: Observer, host: HostProcess, on_start: OnStart) -> report.Report:
    started = time.time()
    earlier = RunFolder.find(job.folder, options.resume) if options.resume else None
    folder = RunFolder.create(job.folder, new_run_id(job.name))
    machine = Machine(len(_affinity()), tuple(visible_gpus(os.environ)))
    request = translate(
        job,
        options,
        folder=folder,
        temporary=host.folder,
        machine=machine,
        checkpoints=_checkpoints(job, folder, earlier),
    )
    info = RunInfo(
        folder.run_id, folder.path, len(request.nodes), request.spec["processes_per_node"], host.engine,
        "GPU" if request.nodes[0].get("CUDA_VISIBLE_DEVICES") else "CPU",
    )  # fmt: skip
    with _writable(folder), folder.followed():
        _record(job, options, folder, request, info, started)
        for node in range(len(request.nodes)):
            folder.node(node).mkdir()
        _stage_code(job, folder)
        _share_out_objects(job, options, folder, len(request.nodes))
        folder.make_latest()
        for note in request.notes:
            observer.note(note)
        observer.begin(info)
        runtime = job.limits.runtime.seconds if job.limits.runtime else None
        follower = Follower(host, folder, observer, nodes=len(request.nodes), runtime=runtime)
        on_start(follower)
        host.start(
            request.nodes,
            secrets=_secret_values(request),
            shm_gib=request.shm_gib,
            grace=options.grace,
            preload=_worth_preloading(job),
        )
        follower.run()
        if options.isolation == "netns" and follower.isolation != "netns" and not follower.fault:
            raise MissingError(f"--isolation netns: {follower.isolation_problem}", hint="use --isolation none")
        return _finish(folder, info, observer, follower, started)


def _finish(folder: RunFolder, info: RunInfo, observer: Observer, follower: Follower, started: float) -> report.Report:
    state = report.final_state(follower.stopped_by, follower.statuses, follower.reports)
    end = report.build(
        folder,
        state=state,
        started=started,
        statuses=follower.statuses,
        reports=follower.reports,
        fault=follower.fault,
        metrics=follower.last_metrics,
        stopped_by=follower.stopped_by,
        isolation=follower.isolation,
        device=info.device,
    )
    try:
        write_json(folder.report, end)
        reason = end["root"]["message"] if end["root"] else None
        folder.write_state(
            {**folder.read_state(), "state": state.value, "exit_code": end["exit_code"], "ended": end["ended"],
             "reason": reason, "isolation": follower.isolation}
        )  # fmt: skip
    except (MissingError, SpecError) as error:
        observer.note(f"the end report was not kept: {error.message}")
    observer.state(state)
    observer.end(end)
    return end


def _record(
    job: Job, options: LocalOptions, folder: RunFolder, request: LocalRequest, info: RunInfo, started: float
) -> None:
    (folder.path / "job.yaml").write_text(job.dump(), encoding="utf-8")
    write_json(folder.path / "spec.json", request.spec)
    folder.write_state(
        {
            "version": 1,
            "run_id": folder.run_id,
            "name": job.name,
            "provider": "local",
            "attempt": 1,
            "state": State.PENDING.value,
            "nodes": info.nodes,
            "processes": info.processes,
            "engine": info.engine,
            "device": info.device,
            "isolation": None,
            "job_file": str(job.file) if job.file else None,
            "resumed_from": options.resume,
            "pid": os.getpid(),
            "started": started,
            "ended": None,
            "exit_code": None,
            "reason": None,
        }
    )


def _checkpoints(job: Job, folder: RunFolder, earlier: RunFolder | None) -> Path:
    """Where this run's checkpoints are: the job's place for them, a folder per run, or the run's own."""
    if earlier is not None:
        spec = earlier.read_state().get("checkpoints")
        return Path(spec) if isinstance(spec, str) else earlier.path / "checkpoints"
    uri = job.checkpoint.uri_for("local")
    if uri is None or "://" in uri:
        return folder.path / "checkpoints"
    return job.folder / uri / folder.run_id


def _stage_code(job: Job, folder: RunFolder) -> None:
    """Copy what would ship, and nothing else: a file that is left out must be missing here, too."""
    bundle = scan(job.code_folder)
    needed = {"entry": job.entry, "task": job.task.partition(":")[0] if job.task else None}
    needed["environment.requirements"] = job.environment.requirements
    for key, name in needed.items():
        if name and os.path.normpath(name).replace(os.sep, "/") not in bundle.paths:
            why = explain(job.code_folder, name)
            raise SpecError(f"{key}: {name} does not ship with the code: {why.text if why else 'it is not there'}")
    stage(bundle, folder.code)
    folder.update_state(bundle=bundle.digest)


def _worth_preloading(job: Job) -> list[str]:
    """What every rank would import a moment later: any optimizer of torch pulls in dynamo, a second or two."""
    if job.task:
        return ["torch._dynamo"]
    if job.entry:
        source = (job.code_folder / job.entry).read_bytes()
        return ["torch._dynamo"] if b"optim" in source and b"torch" in source else []
    return []


def _share_out_objects(job: Job, options: LocalOptions, folder: RunFolder, nodes: int) -> None:
    """``shard: by-object``: every node gets each N-th file of the channel, as links."""
    for name, channel in job.data.items():
        if channel.shard != "by-object":
            continue
        source = data_folder(job, name, options.data)
        files = sorted(path for path in source.rglob("*") if path.is_file())
        for node in range(nodes):
            share = folder.node(node) / "data" / name
            share.mkdir(parents=True)
            for path in files[node::nodes]:
                link = share / path.relative_to(source)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(path.resolve())


def _secret_values(request: LocalRequest) -> dict[str, str]:
    values = {}
    for name, variable in request.secrets.items():
        if variable not in os.environ:
            raise MissingError(f"environment.secrets.{name}: the variable {variable} is not set in this shell")
        values[name] = os.environ[variable]
    return values


@contextlib.contextmanager
def _writable(folder: RunFolder) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise cannot_write(error, folder.path) from error


def _affinity() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
