"""The step that costs money: one attempt is created, and nobody is left in doubt about it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from cloudtrain.errors import CloudtrainError, RefusedError, UnreachableError
from cloudtrain.providers.base import Request
from cloudtrain.providers.port import Client, Description, Progress
from cloudtrain.runs.ledger import Entry, Ledger
from cloudtrain.runs.run import Run

if TYPE_CHECKING:
    from cloudtrain.bundle import Bundle

_AGAIN = "run the same command again: it looks at what is there before it sends anything"


def create(
    client: Client, ledger: Ledger, run_id: str, request: Request, bundle: Bundle | None, progress: Progress
) -> Run:
    """Send what the request needs, and the request; keep what the provider says of it.

    Raises RefusedError, which is kept, too, and what else a client raises: then the same may be asked for again.
    """
    try:
        client.upload(request, bundle, progress)
        seen = _created(client, request)
    except RefusedError as error:
        ledger.fail(run_id, _attempt_of(request), error.message, error.cause)
        raise
    except CloudtrainError as error:
        error.hint = _hint(error)
        raise
    ledger.record(run_id, seen)
    return Run(seen.provider, seen.native_id, request.account, run_id=run_id, state=seen.state)


def _created(client: Client, request: Request) -> Description:
    """A refusal may be of a call that was repeated because the first answer was lost: for want of the quota that the
    job itself has taken. So it counts only if there is no such job."""
    try:
        return client.create(request)
    except RefusedError:
        with suppress(CloudtrainError):
            if (seen := client.find(request)) is not None:
                return seen
        raise


def _hint(error: CloudtrainError) -> str:
    """Who does not know whether the job has been made must hear that to ask again does no harm."""
    if error.hint is None:
        return _AGAIN
    unheard = isinstance(error, UnreachableError) and "the same command again" not in error.hint
    return f"{error.hint}\n{_AGAIN}" if unheard else error.hint


def _attempt_of(request: Request) -> int:
    return int(request.name.rpartition("-a")[2])


def newest_as_sent(client: Client, ledger: Ledger, entry: Entry) -> Description | None:
    """The newest attempt, of whose creation nothing has been heard, if the provider has it all the same."""
    kept = ledger.request(entry.run_id, entry.attempt)
    return client.find(Request(**kept)) if kept else None
