"""A local run from the job to its end report.

    host process started -> job looked at -> folder filled -> request -> nodes -> followed -> report

With ``--as`` the job is translated for that cloud once it was looked at, and the folder filled as its contract says.

If this process is killed after the host process was started, that one stops the nodes; if it is killed earlier, nothing
runs. The run's folder then keeps the last state written, and, once the nodes have ended, a free lock, by which readers
tell that the run was cut off. An error or an interruption here writes the final state before it goes on.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cloudtrain.bundle import stage
from cloudtrain.errors import MissingError, SpecError
from cloudtrain.job import Job
from cloudtrain.providers.local.client import HostProcess, broken_torch, host_for, torch_is_broken
from cloudtrain.providers.local.follow import Follower
from cloudtrain.providers.local.keeping import close_state, keep, record
from cloudtrain.providers.local.options import LocalOptions
from cloudtrain.providers.local.prepare import (
    Ready,
    channels_in_bundle,
    checkpoint_folder,
    share_out_objects,
    worth_preloading,
)
from cloudtrain.providers.local.translate import LocalRequest, needs_fresh_interpreter, translate
from cloudtrain.record import report
from cloudtrain.record.folder import RunFolder, cannot_write, new_run_id, write_json
from cloudtrain.record.observer import Observer, RunInfo

if TYPE_CHECKING:
    from cloudtrain.bundle import Bundle
    from cloudtrain.providers.local.rehearsal import Rehearsal

OnStart = Callable[[Follower], None]


class Place(NamedTuple):
    """What has been made for a run before: by ``background``, which holds the folder's lock, too."""

    folder: RunFolder
    bundle: Bundle | None = None
    """Code to run instead of what lies in the job's folder now."""


def run_local(
    job: Job,
    options: LocalOptions,
    observer: Observer,
    *,
    host: HostProcess | None = None,
    on_start: OnStart = lambda _: None,
    place: Place | None = None,
) -> report.Report:
    """Train ``job`` here and return the end report.

    ``on_start`` gets the follower, by which the run can be stopped. Raises SpecError, JobFileError and MissingError
    before anything has run; a job that fails is a report, not an exception. On KeyboardInterrupt the run is stopped in
    order, and the interrupt raised again. Takes over ``host``.
    """
    host = host or host_for(options)
    try:
        ready = Ready.of(job, options, place.bundle if place else None)
        fresh = needs_fresh_interpreter(job)
        if fresh:
            host.close()
            host = host_for(options, fresh)
        run_id = place.folder.run_id if place else new_run_id(job.name)
        rehearsal = _rehearse(job, options, ready, run_id) if options.as_ else None
        folder = place.folder if place else RunFolder.create(job.folder, run_id)
        with contextlib.nullcontext() if place else folder.followed():
            try:
                return _run(job, options, observer, host, on_start, folder, ready, rehearsal)
            except BaseException as error:
                close_state(folder, error)
                raise
            finally:
                observer.close()
    finally:
        host.close()


def _run(
    job: Job,
    options: LocalOptions,
    observer: Observer,
    host: HostProcess,
    on_start: OnStart,
    folder: RunFolder,
    ready: Ready,
    rehearsal: Rehearsal | None,
) -> report.Report:
    started = time.time()
    request, info = _request(job, options, folder, ready, host, rehearsal)
    with _writable(folder):
        record(job, options, ready, request, info, started)
        notes = _fill(job, options, ready, request, rehearsal)
    folder.make_latest()
    notes += channels_in_bundle(job, options, ready.bundle)
    for note in [*request.notes, *notes, *_resume_notes(ready, request)]:
        observer.note(note)
    observer.begin(info)
    runtime = job.limits.runtime.seconds if job.limits.runtime else None
    follower = Follower(host, folder, observer, nodes=info.nodes, runtime=runtime)
    on_start(follower)
    host.start(
        request.nodes,
        secrets=ready.secrets,
        shm_gib=request.shm_gib,
        grace=options.grace,
        lock=folder.lock,
        preload=worth_preloading(job),
        containers=[rehearsal.container(node, request.places) for node in range(info.nodes)] if rehearsal else (),
    )
    keep(folder)  # while torch is being loaded
    interrupt = _follow(follower)
    if not interrupt and (problem := follower.torch_problem or _torch_problem(follower)):
        raise torch_is_broken(problem)
    if options.isolation == "netns" and follower.isolation != "netns" and not follower.fault and not interrupt:
        raise MissingError(f"--isolation netns: {follower.isolation_problem}", hint="use --isolation none")
    if rehearsal:
        _collect(rehearsal, request, observer)
    end = _finish(folder, info, observer, follower, started, options)
    if interrupt:
        raise interrupt
    return end


def _rehearse(job: Job, options: LocalOptions, ready: Ready, run_id: str) -> Rehearsal:
    from cloudtrain.providers.local.rehearsal import rehearse  # a plain run needs nothing of any cloud

    return rehearse(job, options, ready.bundle, run_id)


def _fill(
    job: Job, options: LocalOptions, ready: Ready, request: LocalRequest, rehearsal: Rehearsal | None
) -> list[str]:
    """Put code and data where the nodes look for them. Returns what to tell the user."""
    folder = request.places.folder
    folder.update_state(bundle=ready.bundle.digest)
    if rehearsal:
        from cloudtrain.providers.local.container import fill

        return [*rehearsal.notes, *fill(rehearsal, request, ready.bundle)]
    stage(ready.bundle, folder.code)
    return share_out_objects(job, options, folder, len(request.nodes))


def _torch_problem(follower: Follower) -> str:
    """Nodes that load torch themselves say that they have not started, and a host process that torch has killed (for
    another processor than this one) says nothing: then it is looked at once more, where it takes nothing with it."""
    crashed = follower.fault is not None and not follower.pids
    roots = [found["root"] for found in follower.reports.values() if found["root"]]
    if follower.stopped_by or not (crashed or any(root["kind"] == "not-started" for root in roots)):
        return ""
    return broken_torch()


def _collect(rehearsal: Rehearsal, request: LocalRequest, observer: Observer) -> None:
    from cloudtrain.providers.local.collect import collect

    try:
        for note in collect(rehearsal, request.places):
            observer.note(note)
    except OSError as error:  # the run has had its end, and is reported all the same
        observer.note(f"results stay in {request.places.folder.path / 'nodes'}: {error}")


def _follow(follower: Follower) -> KeyboardInterrupt | None:
    """To the end, however often the caller's program is interrupted meanwhile; returns the first interrupt."""
    first = None
    while True:
        try:
            follower.run()
            return first
        except KeyboardInterrupt as interrupt:
            first = first or interrupt
            follower.request_stop("SIGINT")


def _request(
    job: Job,
    options: LocalOptions,
    folder: RunFolder,
    ready: Ready,
    host: HostProcess,
    rehearsal: Rehearsal | None,
) -> tuple[LocalRequest, RunInfo]:
    request = translate(
        job,
        options,
        folder=folder,
        temporary=host.folder,
        machine=ready.machine,
        checkpoints=checkpoint_folder(job, folder, ready.earlier),
        token=secrets.token_hex(16),
        rehearsal=rehearsal,
    )
    device = "GPU" if request.nodes[0].get("CUDA_VISIBLE_DEVICES") else "CPU"
    processes = request.spec["processes_per_node"]
    return request, RunInfo(folder.run_id, folder.path, len(request.nodes), processes, host.engine, device)


def _resume_notes(ready: Ready, request: LocalRequest) -> Iterator[str]:
    if ready.earlier:
        yield f"continuing from run {ready.earlier.run_id}"
    if ready.earlier and not _holds_anything(request.places.checkpoints):
        yield f"run {ready.earlier.run_id} left no checkpoint: this run starts from the beginning"


def _holds_anything(folder: Path) -> bool:
    try:
        return any(os.scandir(folder))
    except OSError:
        return False


def _finish(
    folder: RunFolder,
    info: RunInfo,
    observer: Observer,
    follower: Follower,
    started: float,
    options: LocalOptions,
) -> report.Report:
    state = report.final_state(follower.stopped_by, follower.statuses, follower.reports, follower.fault)
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
        as_=options.as_,
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
    keep(folder)
    return end


@contextlib.contextmanager
def _writable(folder: RunFolder) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise cannot_write(error, Path(error.filename) if isinstance(error.filename, str) else folder.path) from error
