"""The port to Vertex AI: JobService for jobs, Cloud Storage for files, Cloud Logging for lines. See ``port.py``.

A request is sent as it is, by Google's own client for the service, and no more than once; see ``jobs.py``. Nothing of
``google.cloud.aiplatform`` itself is used.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cloudtrain.errors import MissingError, RefusedError
from cloudtrain.providers.port import Artefact, Cursor, Description, LogPage, Progress, Uploaded, silent
from cloudtrain.providers.reading import text
from cloudtrain.providers.vertex import artefacts, finding
from cloudtrain.providers.vertex.endpoints import LOGGING, Endpoints
from cloudtrain.providers.vertex.jobs import Job, Jobs
from cloudtrain.providers.vertex.logs import Logs, Subject, nanoseconds
from cloudtrain.providers.vertex.states import described, pool_sizes
from cloudtrain.providers.vertex.store import Store
from cloudtrain.providers.vertex.upload import upload
from cloudtrain.record.state import State

if TYPE_CHECKING:
    from cloudtrain.bundle import Bundle
    from cloudtrain.providers.base import Request

_ORDER_SECONDS, _SETTLE_SECONDS = 5.0, 30.0
"""How long lines wait for those before them, and how long after a job's end the last may come: the service takes some
seconds to show an entry; gcloud, too, stays 5 s behind."""
_ORDER_SECONDS_HERE, _SETTLE_SECONDS_HERE = 1.0, 4.0
"""The same where a variable names a server in place of Cloud Logging."""


def connect(account: Mapping[str, str]) -> Vertex:
    """The port to the account's project and region. Google's packages and credentials are asked for by the first call,
    which raises MissingError without them."""
    for name in ("project", "region"):
        if not account.get(name):
            raise MissingError(f"vertex.{name} is not set", hint="put it into cloudtrain.toml, section [vertex]")
    return Vertex(account["project"], account["region"])


class Vertex:
    """See ``port.Client``. The native id of a job is its resource name."""

    poll_seconds = 10.0
    """Cloud Logging lets a project read 60 times a minute, and a look takes two readings."""

    def __init__(self, project: str, region: str) -> None:
        here = bool(os.environ.get(LOGGING))
        self.settle_seconds = _SETTLE_SECONDS_HERE if here else _SETTLE_SECONDS
        self._project = project
        self._parent = f"projects/{project}/locations/{region}"
        self._endpoints = endpoints = Endpoints(project, region)
        self._jobs = Jobs(endpoints, self._parent)
        self._store = Store(endpoints)
        self._logs = Logs(endpoints, project, _ORDER_SECONDS_HERE if here else _ORDER_SECONDS)
        self._subjects: dict[str, Subject] = {}

    def upload(self, request: Request, bundle: Bundle | None, progress: Progress = silent) -> Uploaded:
        """The code by its digest, and the spec."""
        return upload(self._store, request, bundle, progress)

    def create(self, request: Request) -> Description:
        """The service takes any name any number of times: so it is asked before, and after an answer that was lost."""
        found = finding.made_by(self._jobs, request)
        if found is None:
            found = self._jobs.create(request.native, lambda: finding.made_by(self._jobs, request))
        return self._described(found)

    def find(self, request: Request) -> Description | None:
        """By the labels; whether it is this one its fingerprint says."""
        found = finding.made_by(self._jobs, request)
        return self._described(found) if found else None

    def describe(self, native_id: str) -> Description:
        """One call; two for a job that has failed just now: its log says why a minute before the job does."""
        job = self._jobs.get(native_id)
        seen = self._described(job)
        if seen.settled or seen.ended is None:
            return seen
        return self._described(job, self._logs.last_words(_number(job), seen.ended))

    def stop(self, native_id: str) -> None:
        """What the service answers for a job that is over is not documented: its state says whether that was one."""
        try:
            self._jobs.cancel(native_id)
        except RefusedError as error:
            state = None if error.cause == "permission" else self.describe(native_id).state
            if state is None or not (state.is_final or state is State.STOPPING):
                raise

    def list(self, run_id: str | None = None) -> Iterator[Description]:
        """By the labels. The service gives them in no order that it promises."""
        found = [self._described(job) for job in self._jobs.list(finding.of_run(run_id))]
        yield from sorted(found, key=lambda one: one.created or 0.0, reverse=True)

    def logs(self, native_id: str, cursor: Cursor) -> LogPage:
        """From Cloud Logging."""
        subject = self._subjects.get(native_id)
        if subject is None or not cursor:
            subject = self._subjects[native_id] = self._subject(native_id)
        return self._logs.page(subject, cursor)

    def artefacts(self, native_id: str) -> Iterator[Artefact]:
        """From Cloud Storage, where the job's variables say that its nodes write."""
        yield from artefacts.artefacts(self._store, self._jobs.get(native_id))

    def fetch(self, artefact: Artefact, folder: Path, progress: Progress = silent) -> None:
        """One object is one file."""
        artefacts.fetch(self._store, artefact, folder, progress)

    def native_id(self, text: str) -> str:
        """A job's number, its resource name, or its display name, which is the name that its request gave it."""
        return finding.native_id(text, self._jobs, self._parent)

    def close(self) -> None:
        """Of all of Google's clients."""
        self._endpoints.close()

    def _described(self, job: Job, said: str = "") -> Description:
        return described(job, self._project, time.time(), said)

    def _subject(self, native_id: str) -> Subject:
        job = self._jobs.get(native_id)
        return Subject(
            number=_number(job),
            created=nanoseconds(text(job, "createTime")) or 0,
            pools=pool_sizes(job),
            is_over=self._described(job).state.is_final,
        )


def _number(job: Job) -> str:
    return text(job, "name").rpartition("/")[2]
