"""From a job to a run on a provider, safely repeatable.

    job looked at -> request -> ledger (intent) -> is it there already? -> upload -> create -> ledger

If this process dies before ``begin`` nothing has happened. After it, the ledger has the name, and the next submit of
the same job asks the provider for a job of that name before it sends anything: one that was created is taken up, what
was uploaded is not sent again. The same job, code and settings have the same run id; once such a run is over, or with
``new``, the next one is numbered: ``digits-3f9c2b71aa-2``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cloudtrain.errors import CloudtrainError, MissingError, RefusedError, SpecError
from cloudtrain.job import Job
from cloudtrain.providers import registry
from cloudtrain.providers.account import require
from cloudtrain.providers.base import Context, Request, Shipped
from cloudtrain.providers.identity import run_id_of
from cloudtrain.providers.localdata import Placed, placed
from cloudtrain.providers.port import Client, Description, Progress, silent
from cloudtrain.providers.shipping import bundle_of
from cloudtrain.rendering.check import check_request
from cloudtrain.rendering.request import context_for
from cloudtrain.runs.ledger import Entry, Ledger
from cloudtrain.runs.observer import Observer
from cloudtrain.runs.run import Run
from cloudtrain.runs.state import State
from cloudtrain.settings import Settings, settings_for
from cloudtrain.spec.problems import JobFileError

if TYPE_CHECKING:
    from cloudtrain.bundle import Bundle

_MOST_RUNS = 1000
"""Of one job, code and settings, before something must be wrong."""


class Prepared(NamedTuple):
    """A job that has been looked at and translated, and nothing sent."""

    job: Job
    settings: Settings
    bundle: Bundle
    first: Context
    """Of the first run of this job, code and settings."""
    data: tuple[Shipped, ...]
    """Files of channels that lie here and travel with the job."""

    def context(self, number: int) -> Context:
        """That of the run with this number, counted from 1."""
        run_id = self.first.run_id if number == 1 else f"{self.first.run_id}-{number}"
        return self.first._replace(run_id=run_id)

    def request(self, number: int = 1) -> Request:
        """The request of the first attempt. Raises JobFileError with all that the provider refuses."""
        made = registry.translate(self.job, self.context(number))
        return made._replace(ships=(*made.ships, *self.data))


def prepare(job: Job, provider: str, *, settings: Mapping[str, str] | None = None) -> Prepared:
    """Look at everything that can be looked at without an account.

    Raises JobFileError with all that is wrong, SpecError for ill-formed settings and code that cannot ship,
    MissingError for settings that nobody gave.
    """
    name = registry.known(provider, local=True)
    chosen = settings_for(name, job.folder, given=settings)
    bundle = bundle_of(job)
    found = placed(job, chosen) if name != registry.LOCAL else Placed(job, (), ())
    context = context_for(found.job, chosen, bundle)
    if name == registry.LOCAL:  # its places are those of this folder: the same job elsewhere is another one
        here = {"project": str(job.folder.resolve())}
        context = context._replace(run_id=run_id_of(job, name, here, context.code))
    prepared = Prepared(found.job, chosen, bundle, context, found.ships)
    request = prepared.request()
    if problems := check_request(job, request).problems:
        raise JobFileError(problems)
    require(chosen)
    return prepared


def submit(
    job: Job,
    provider: str,
    *,
    settings: Mapping[str, str] | None = None,
    new: bool = False,
    observer: Observer | None = None,
    progress: Progress = silent,
) -> Run:
    """Start ``job`` on ``provider``, unless it is running there: then that run is returned, except with ``new``.

    Raises what ``prepare`` does; RefusedError if the provider refuses, MissingError for a package or credentials that
    are missing, UnreachableError if it does not answer: then the same call may be made again.
    """
    return send(prepare(job, provider, settings=settings), new=new, observer=observer, progress=progress)


def send(
    prepared: Prepared, *, new: bool = False, observer: Observer | None = None, progress: Progress = silent
) -> Run:
    """``submit`` for a job that has been prepared."""
    with Ledger.open() as ledger:
        return _Submission(prepared, ledger, observer or Observer(), progress).run(new)


class _Submission:
    def __init__(self, prepared: Prepared, ledger: Ledger, observer: Observer, progress: Progress) -> None:
        self._prepared = prepared
        self._ledger = ledger
        self._observer = observer
        self._progress = progress
        self._client: Client = registry.connect(prepared.settings.provider, prepared.request().account)

    def run(self, new: bool) -> Run:
        family = self._ledger.family(self._prepared.first.run_id)
        for number in range(max(1, len(family)), _MOST_RUNS):
            request = self._prepared.request(number)
            run_id = self._prepared.context(number).run_id
            entry = self._ledger.entry(run_id)
            seen = _seen(self._client, entry, request)
            if seen is None and not _is_over(entry):
                return self._create(request, number, entry)
            if seen is not None and not seen.state.is_final and not new:
                return self._take_up(request, number, entry, seen)
        raise SpecError(f"{_MOST_RUNS} runs of this job have been made; change its name")

    def _create(self, request: Request, number: int, entry: Entry | None) -> Run:
        run_id = self._prepared.context(number).run_id
        if entry is None:
            self._begin(request, number)
        else:
            self._observer.note(f"going on with run {run_id}, which had not been created yet")
        return _create(self._client, self._ledger, run_id, request, self._prepared.bundle, self._progress)

    def _begin(self, request: Request, number: int) -> None:
        entry = _entry_of(self._prepared, request, number)
        self._ledger.begin(entry, request._asdict(), _plan_of(self._prepared))

    def _take_up(self, request: Request, number: int, entry: Entry | None, seen: Description) -> Run:
        """A run of this very job that is going on: made here, or from another machine."""
        run_id = self._prepared.context(number).run_id
        if entry is None:
            self._begin(request, number)
        self._ledger.record(run_id, seen)
        self._observer.note(f"run {run_id} of this job is {seen.state} already; --new starts another one")
        return Run(seen.provider, seen.native_id, request.account, run_id=run_id)


def resume(run_id: str, observer: Observer, *, progress: Progress = silent) -> Run:
    """A further attempt of a run that has ended: the same job, code and folders, so it goes on from its checkpoints.

    Raises SpecError if the run goes on, has succeeded, or is not in this machine's ledger.
    """
    with Ledger.open() as ledger:
        entry, plan = ledger.entry(run_id), ledger.plan(run_id)
        if entry is None or plan is None:
            raise SpecError(
                f"run {run_id} was not submitted from here, so what it was made from is not known",
                hint="submit the job file from here; a run that is going on is found by its name",
            )
        client = registry.connect(entry.provider, entry.account)
        _refuse_unfit(client, entry)
        request = _next_request(entry, plan)
        attempt = entry.attempt + 1
        observer.note(f"attempt {attempt} of run {run_id}, from its checkpoints")
        ledger.begin(_begun_again(entry, request, attempt), request._asdict())
        return _create(client, ledger, run_id, request, None, progress)


def found_again(entry: Entry) -> Run:
    """A run whose submit was cut off, if the provider has it after all. Raises SpecError if it has not."""
    with Ledger.open() as ledger:
        kept = ledger.request(entry.run_id, entry.attempt)
        client = registry.connect(entry.provider, entry.account)
        seen = client.find(Request(**kept)) if kept and entry.state is not State.FAILED else None
        if seen is None:
            why = entry.reason or "its submit was cut off"
            raise SpecError(f"run {entry.run_id} was never created: {why}", hint="submit the job again")
        ledger.record(entry.run_id, seen)
    return Run(entry.provider, seen.native_id, entry.account, run_id=entry.run_id)


def _seen(client: Client, entry: Entry | None, request: Request) -> Description | None:
    """The newest attempt as the provider has it; None if it has none (any more)."""
    if entry is None or not entry.native_id:
        return client.find(request)
    try:
        return client.describe(entry.native_id)
    except RefusedError:
        if entry.state.is_final or entry.provider == registry.LOCAL:  # its folder was removed
            return None
        raise


def _is_over(entry: Entry | None) -> bool:
    """Whether the ledger knows of its end; what was refused before it began may be tried again under its name."""
    return entry is not None and entry.state.is_final and bool(entry.native_id)


def _create(
    client: Client, ledger: Ledger, run_id: str, request: Request, bundle: Bundle | None, progress: Progress
) -> Run:
    try:
        client.upload(request, bundle, progress)
        seen = client.create(request)
    except RefusedError as error:
        ledger.fail(run_id, _attempt_of(request), error.message, error.cause)
        raise
    except CloudtrainError as error:
        if error.hint is None:
            error.hint = "run the same command again: it looks at what is there before it sends anything"
        raise
    ledger.record(run_id, seen)
    return Run(seen.provider, seen.native_id, request.account, run_id=run_id)


def _attempt_of(request: Request) -> int:
    return int(request.name.rpartition("-a")[2])


def _plan_of(prepared: Prepared) -> dict[str, Any]:
    job = prepared.job
    return {
        "job": job.dump(),
        "job_file": str((job.file or job.folder / "job.yaml").absolute()),  # what its paths are seen from
        "settings": dict(prepared.settings),
        "bundle": prepared.first.bundle,
        "entrypoints": prepared.first.entrypoints,
        "processes": job.processes,
    }


def _entry_of(prepared: Prepared, request: Request, number: int) -> Entry:
    job, context = prepared.job, prepared.context(number)
    return Entry(
        run_id=context.run_id,
        provider=request.provider,
        name=job.name,
        family=prepared.first.run_id,
        project=str(job.folder.resolve()),
        attempt=context.attempt,
        native_name=request.name,
        native_id="",
        account=request.account,
        created=time.time(),
        nodes=job.resources.nodes,
    )


def _begun_again(entry: Entry, request: Request, attempt: int) -> Entry:
    """The run as it stands when a further attempt begins."""
    return Entry(
        run_id=entry.run_id,
        provider=entry.provider,
        name=entry.name,
        family=entry.family,
        project=entry.project,
        attempt=attempt,
        native_name=request.name,
        native_id="",
        account=entry.account,
        created=entry.created,
        nodes=entry.nodes,
    )


def _refuse_unfit(client: Client, entry: Entry) -> None:
    """Only what has ended without success is gone on with."""
    if not entry.native_id:
        raise SpecError(f"run {entry.run_id} was never created", hint="submit the job again")
    state = client.describe(entry.native_id).state
    if state is State.SUCCEEDED:
        raise SpecError(
            f"run {entry.run_id} has succeeded: there is nothing to go on with",
            hint="submit the job with --new for another run",
        )
    if not state.is_final:
        raise SpecError(f"run {entry.run_id} is {state}", hint=f"cloudtrain stop {entry.run_id}, or wait for its end")


def _next_request(entry: Entry, plan: Mapping[str, Any]) -> Request:
    job = Job.parse(plan["job"], Path(plan["job_file"]))
    settings = Settings(entry.provider, {name: value for name, value in plan["settings"].items() if value})
    context = Context(settings, plan["bundle"], plan["entrypoints"], entry.run_id, entry.attempt + 1)
    try:
        return registry.translate(job, context)
    except JobFileError as error:  # by a later cloudtrain than the one that took it
        raise MissingError(f"run {entry.run_id} cannot be gone on with: {error.message}") from error
