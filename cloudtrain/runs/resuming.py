"""Further attempts of a run: the same job, code and folders, under the name that comes next.

What the attempt is made from was kept when the run was submitted, so the job file may have changed since, or be gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from cloudtrain.errors import MissingError, SpecError
from cloudtrain.job import Job
from cloudtrain.providers import registry
from cloudtrain.providers.base import Context, Request
from cloudtrain.providers.port import Client, Progress, silent
from cloudtrain.record.observer import Observer
from cloudtrain.record.state import State
from cloudtrain.runs.alone import alone
from cloudtrain.runs.creating import create, newest_as_sent
from cloudtrain.runs.ledger import Entry, Ledger
from cloudtrain.runs.run import Run
from cloudtrain.settings import Settings
from cloudtrain.spec.problems import JobFileError


def resume(run_id: str, observer: Observer, *, progress: Progress = silent) -> Run:
    """A further attempt of a run that has ended: the same job, code and folders, so it goes on from its checkpoints.

    An attempt that was refused, or whose making was cut off, is made again; one that was made, and whose making was
    not answered, is taken up. Raises SpecError if the run goes on, has succeeded, or is not in this machine's ledger.
    """
    with Ledger.open() as ledger, alone(_submitted_here(ledger, run_id)[0].family, observer):
        entry, plan = _submitted_here(ledger, run_id)
        with closing(registry.connect(entry.provider, entry.account)) as client:
            if (run := _taken_up(client, ledger, entry, observer)) is not None:
                return run
            entry = _last_attempt(client, ledger, entry)
            request = _next_request(entry, plan)
            observer.note(f"attempt {entry.attempt + 1} of run {run_id}, from its checkpoints")
            ledger.begin(_begun_again(entry, request, entry.attempt + 1), request._asdict())
            return create(client, ledger, run_id, request, None, progress)


def found_again(entry: Entry) -> Run:
    """A run of whose newest attempt nothing has been heard, its submit having been cut off or refused: that attempt, if
    the provider has it after all, or else the one before. Raises SpecError if there is none."""
    with Ledger.open() as ledger:
        with closing(registry.connect(entry.provider, entry.account)) as client:
            seen = newest_as_sent(client, ledger, entry)  # not kept: for `resume` it is still one without an answer
        if seen is not None:
            return Run(entry.provider, seen.native_id, entry.account, run_id=entry.run_id)
        earlier = ledger.newest_created(entry.run_id)
    if earlier is None:
        why = entry.reason or "its submit was cut off"
        raise SpecError(f"run {entry.run_id} was never created: {why}", hint="submit the job again")
    return Run.of(earlier)


def _submitted_here(ledger: Ledger, run_id: str) -> tuple[Entry, dict[str, Any]]:
    """The run, and what it is made from. Raises SpecError for one that the ledger does not have."""
    entry, plan = ledger.entry(run_id), ledger.plan(run_id)
    if entry is None or not plan:
        raise SpecError(
            f"run {run_id} was not submitted from here, so what it was made from is not known",
            hint="submit the job file from here; a run that is going on is found by its name",
        )
    return entry, plan


def _taken_up(client: Client, ledger: Ledger, entry: Entry, observer: Observer) -> Run | None:
    """A further attempt whose creation was not answered, if it is there after all and goes on. Whatever is there, the
    ledger knows it then."""
    seen = None if entry.native_id else newest_as_sent(client, ledger, entry)
    if seen is None:
        return None
    ledger.record(entry.run_id, seen)
    if seen.attempt == 1 or seen.state.is_final:
        return None
    observer.note(f"attempt {seen.attempt} of run {entry.run_id} had been made, and is {seen.state}")
    return Run(entry.provider, seen.native_id, entry.account, run_id=entry.run_id)


def _last_attempt(client: Client, ledger: Ledger, entry: Entry) -> Entry:
    """The run at the newest attempt that the ledger knows to have been created. Raises SpecError if there was none, or
    it is not to be gone on with."""
    if not entry.native_id:
        found = ledger.newest_created(entry.run_id)
        if found is None:
            raise SpecError(f"run {entry.run_id} was never created", hint="submit the job again")
        entry = found
    _refuse_unfit(client, entry)
    return entry


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
