"""From a job to a run on a provider, safely repeatable.

    job looked at -> request -> ledger (intent) -> is it there already? -> upload -> create -> ledger

If this process dies before ``begin`` nothing has happened. After it, the ledger has the name, and the next submit of
the same job asks the provider for a job of that name before it sends anything: one that was created is taken up, what
was uploaded is not sent again. On one machine a submit of a job waits for another one of it. The same job, code and
settings have the same run id; once such a run is over, or with ``new``, the next one is numbered:
``digits-3f9c2b71aa-2``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from cloudtrain.errors import RefusedError, SpecError
from cloudtrain.job import Job
from cloudtrain.providers import registry
from cloudtrain.providers.account import require
from cloudtrain.providers.base import Context, Request, Shipped
from cloudtrain.providers.checking import check_request
from cloudtrain.providers.identity import run_id_of
from cloudtrain.providers.port import Client, Description, Progress, silent
from cloudtrain.providers.shipping import bundle_of
from cloudtrain.record.observer import Observer
from cloudtrain.record.state import State
from cloudtrain.rendering.request import context_for, with_data
from cloudtrain.runs.alone import alone
from cloudtrain.runs.creating import create, newest_as_sent
from cloudtrain.runs.ledger import Entry, Ledger
from cloudtrain.runs.numbering import first_to_look_at, is_over
from cloudtrain.runs.numbering import run_id_of as run_id_of_number
from cloudtrain.runs.run import Run
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
    notes: tuple[str, ...] = ()
    """What to say of them."""

    def context(self, number: int) -> Context:
        """That of the run with this number, counted from 1."""
        return self.first._replace(run_id=run_id_of_number(self.first.run_id, number))

    def request(self, number: int = 1) -> Request:
        """The request of the first attempt. Raises JobFileError with all that the provider refuses."""
        made = registry.translate(self.job, self.context(number))
        return made._replace(ships=(*made.ships, *self.data), notes=(*self.notes, *made.notes))


def prepare(job: Job, provider: str, *, settings: Mapping[str, str] | None = None) -> Prepared:
    """Look at everything that can be looked at without an account.

    Raises JobFileError with all that is wrong, SpecError for ill-formed settings and code that cannot ship,
    MissingError for settings that nobody gave.
    """
    name = registry.known(provider, local=True)
    chosen = settings_for(name, job.folder, given=settings)
    bundle = bundle_of(job)
    placed, ships, notes = with_data(job, chosen)
    context = context_for(placed, chosen, bundle)
    if name == registry.LOCAL:  # its places are those of this folder: the same job elsewhere is another one
        here = {"project": str(job.folder.resolve())}
        context = context._replace(run_id=run_id_of(job, name, here, context.code))
    prepared = Prepared(placed, chosen, bundle, context, ships, notes)
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
    observer = observer or Observer()
    with (
        Ledger.open() as ledger,
        alone(prepared.first.run_id, observer),
        closing(registry.connect(prepared.settings.provider, prepared.request().account)) as client,
    ):
        return _Submission(prepared, client, ledger, observer, progress).run(new)


class _Submission:
    def __init__(
        self, prepared: Prepared, client: Client, ledger: Ledger, observer: Observer, progress: Progress
    ) -> None:
        self._prepared = prepared
        self._client = client
        self._ledger = ledger
        self._observer = observer
        self._progress = progress

    def run(self, new: bool) -> Run:
        family = self._ledger.family(self._prepared.first.run_id)
        before = ""
        for number in range(first_to_look_at(family), _MOST_RUNS):
            request = self._prepared.request(number)
            run_id = self._prepared.context(number).run_id
            entry = self._ledger.entry(run_id)
            seen = _seen(self._client, self._ledger, entry, request)
            if seen is None and not is_over(entry):
                return self._create(request, number, entry, before)
            if seen is not None and not seen.state.is_final and not new:
                return self._take_up(request, number, entry, seen)
            before = f"run {run_id} of this job {_stood(seen, entry)}"
        raise SpecError(f"{_MOST_RUNS} runs of this job have been made; change its name")

    def _create(self, request: Request, number: int, entry: Entry | None, before: str) -> Run:
        run_id = self._prepared.context(number).run_id
        if before:
            self._observer.note(f"{before}; this is another one, {run_id}")
        if entry is not None:
            self._observer.note(f"going on with run {run_id}, which had not been created yet")
        self._begin(request, number)  # also anew: a refusal that was kept counts no longer
        return create(self._client, self._ledger, run_id, request, self._prepared.bundle, self._progress)

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
        return Run(seen.provider, seen.native_id, request.account, run_id=run_id, state=seen.state)


def _stood(seen: Description | None, entry: Entry | None) -> str:
    """``SUCCEEDED before``, ``is RUNNING``: how a run stands that is not the one to be made."""
    state = seen.state if seen else entry.state if entry else State.UNKNOWN
    return f"{state} before" if state.is_final else f"is {state}"


def _seen(client: Client, ledger: Ledger, entry: Entry | None, request: Request) -> Description | None:
    """The newest attempt as the provider has it; None if it has none (any more). ``request``: the first one's."""
    if entry is None:
        return client.find(request)
    if not entry.native_id:
        resumed = newest_as_sent(client, ledger, entry) if entry.attempt > 1 else None
        return resumed or client.find(request)
    try:
        return client.describe(entry.native_id)
    except RefusedError:
        if entry.state.is_final or entry.provider == registry.LOCAL:  # its folder was removed
            return None
        return client.find(request)  # None if it was deleted there


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
