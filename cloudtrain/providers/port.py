"""The port: all that cloudtrain asks of a provider, once a request has been made.

    upload -> create -> describe, logs ... -> artefacts, fetch -> close      find: is it there already?   stop   list

``providers/<name>/client.py`` has ``connect(account) -> Client`` and nothing else that is called from outside. A client
sends what ``translate`` made and turns answers into the neutral values below; it decides nothing about retries of
a job, keeps nothing, and prints nothing. Every method may block for as long as the client's own bounded, jittered
retries last, and raises:

RefusedError      the service said no: quota, capacity, permission, a request it does not take, a name that is taken
MissingError      the vendor's package, or credentials, are missing here
UnreachableError  no answer, or none that makes sense, after all retries; what was asked may or may not have been done

Throttling is none of these while retries last. What a vendor's SDK raises never leaves a client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from cloudtrain.record.state import State

if TYPE_CHECKING:
    from cloudtrain.bundle import Bundle
    from cloudtrain.providers.base import Request

Cause = Literal[
    "", "user-code", "capacity", "quota", "preempted", "node-lost", "infrastructure", "timeout", "image", "data",
    "permission", "invalid",
]  # fmt: skip
"""Why an attempt ended as it did, as far as the provider lets it be known; "" for success and where it does not."""


class Description(NamedTuple):
    """One attempt of a run, as its provider describes it at one moment."""

    provider: str
    native_id: str
    """What ``describe`` takes: a training job's name, a custom job's resource name, a job's name, a run's folder."""
    name: str
    """The name that the request gave this attempt."""
    state: State
    vendor_state: str
    """The service's own words, such as ``InProgress/Downloading``."""
    reason: str = ""
    """The service's own message, without control characters; "" if it has none."""
    cause: Cause = ""
    run_id: str = ""
    """Of the run this is an attempt of, read from what the service echoes; "" for a job that is not cloudtrain's."""
    attempt: int = 1
    fingerprint: str = ""
    """Read from what the service echoes; see ``identity.fingerprint``."""
    created: float | None = None
    """Seconds since the epoch, as are the others."""
    started: float | None = None
    ended: float | None = None
    restarts: int = 0
    """How often the service itself has started the job anew, as far as it tells."""
    url: str = ""
    """Where a person looks at it; "" if there is no such page."""
    nodes: int = 0
    """0 if the service does not tell."""
    policy: str = ""
    """What ``nodes.policy`` put into the request, read back."""
    exit_code: int | None = None
    """What a command that followed the run to its end exits with, where that is not what the state says."""
    settled: bool = True
    """False for a while after an end of which the service says later why: state, reason and cause may yet change."""


class LogLine(NamedTuple):
    """One line of a node's output."""

    node: int
    rank: int | None
    """None for the launcher's own words, and for what the platform says."""
    text: str
    """Without the ``[node/rank]`` before it, without a newline."""
    time: float | None = None
    """Seconds since the epoch, where the service keeps it."""

    def __str__(self) -> str:
        return f"[{self.node}/{'-' if self.rank is None else self.rank}] {self.text}"


Cursor = Mapping[str, Any]
"""How far a reader has come: plain JSON, that of the same client of any process. ``{}`` is the beginning."""


class LogPage(NamedTuple):
    """Some lines; per rank in the order they were printed, each line once over all pages read one after the other."""

    lines: tuple[LogLine, ...]
    cursor: Cursor
    """Where the next page begins."""
    caught_up: bool
    """Nothing more is there now. More may come: also for a while after the job has ended."""


class Artefact(NamedTuple):
    """A file that a run has left."""

    kind: str
    """``model``, ``output``, ``metrics``, ``checkpoints``, or ``outputs/NAME``: the folder it belongs to."""
    path: str
    """Below that folder, with forward slashes. Comes from outside: may be anything."""
    size: int
    """Bytes; -1 where a single archive holds it with others and the size is not known before."""
    source: str
    """What ``fetch`` takes; only the same client understands it."""


Progress = Callable[[int, int], None]
"""Called with the bytes that are done and those that there are in all; from one thread, any number of times."""


def silent(_done: int, _total: int) -> None:
    """The Progress that shows nothing."""


class Uploaded(NamedTuple):
    """What an upload came to."""

    sent: int
    """Bytes that were sent."""
    present: int
    """Bytes that lay there already."""


class Client(Protocol):
    """See the module's text. May be used by one thread at a time; ``connect`` makes another one."""

    poll_seconds: float
    """How long to wait between two looks at the same job, so that the service's limits are kept."""
    settle_seconds: float
    """For how long after the end of a job further log lines may appear."""

    def upload(self, request: Request, bundle: Bundle | None, progress: Progress = silent) -> Uploaded:
        """See to it that ``request.ships`` lies where the request says. What has a content digest and is there already
        is not sent again. ``bundle`` None: the code must be there (an earlier attempt's); MissingError if it is not."""

    def create(self, request: Request) -> Description:
        """Start the attempt. Once: where an answer was lost the service is asked before anything is sent again, and a
        job of the same name and fingerprint is that job. RefusedError if another one has the name."""

    def find(self, request: Request) -> Description | None:
        """The attempt, if it has been created before, by whomever. RefusedError if another job has its name."""

    def describe(self, native_id: str) -> Description:
        """How the job stands. NotFoundError, a RefusedError, if there is no such job."""

    def stop(self, native_id: str) -> None:
        """Ask for the end. Does not wait; asking for what is over or ending already is no error."""

    def list(self, run_id: str | None = None) -> Iterator[Description]:
        """The jobs that cloudtrain has made in this account, newest first; of one run alone if asked."""

    def logs(self, native_id: str, cursor: Cursor) -> LogPage:
        """The next lines of all nodes. No line yet is an empty page, not an error."""

    def artefacts(self, native_id: str) -> Iterator[Artefact]:
        """What the run has left, as far as it is there."""

    def fetch(self, artefact: Artefact, folder: Path, progress: Progress = silent) -> None:
        """Write the artefact below ``folder`` (at its ``path``, or an archive's content), nothing outside it."""

    def native_id(self, text: str) -> str:
        """The id that a user means by ``sagemaker:TEXT``: a job's name, its number, its ARN, its resource name.
        SpecError if it can be none; NotFoundError where it is asked and no job is called so."""

    def close(self) -> None:
        """Give all connections back. Nothing is asked of the client after that; to close it again is no error."""


PROMISED = ("poll_seconds", "settle_seconds", *(name for name in vars(Client) if not name.startswith("_")))
"""What a client must have."""
