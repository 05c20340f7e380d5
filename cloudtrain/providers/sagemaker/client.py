"""The port to Amazon SageMaker, over boto3. See ``port.py``.

A request is sent as it is. Calls are repeated by botocore, with jitter and within bounds; its waiter is not used: it
takes a job that ran out of time for one that did well.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloudtrain.errors import MissingError, RefusedError, UnreachableError
from cloudtrain.providers.nodes import FINGERPRINT
from cloudtrain.providers.paging import Tokens
from cloudtrain.providers.port import Artefact, Cursor, Description, LogPage, Progress, Uploaded, silent
from cloudtrain.providers.reading import entries, text
from cloudtrain.providers.sagemaker import artefacts, names
from cloudtrain.providers.sagemaker.description import accepted, described, summarized
from cloudtrain.providers.sagemaker.errors import asking, called, expect
from cloudtrain.providers.sagemaker.logs import LogReader
from cloudtrain.providers.sagemaker.refusals import NameTaken, NotThere
from cloudtrain.providers.sagemaker.session import Services
from cloudtrain.providers.sagemaker.upload import upload
from cloudtrain.record.state import State

if TYPE_CHECKING:
    from cloudtrain.bundle import Bundle
    from cloudtrain.providers.base import Request

_PAGE = 100
_LIST_SECONDS = 0.5
"""Between two pages of a list: the service is said to take two of these calls a second."""


def connect(account: Mapping[str, str]) -> SageMaker:
    """The port to the account's region. Raises MissingError without boto3, credentials or a region."""
    region = account.get("region")
    if not region:
        raise MissingError("sagemaker.region is not set", hint="put it into cloudtrain.toml, section [sagemaker]")
    return SageMaker(Services(region))


class SageMaker:
    """See ``port.Client``. The native id of a job is its name."""

    poll_seconds = 15.0
    settle_seconds = 15.0

    def __init__(self, services: Services) -> None:
        self._services = services
        self._region = services.region

    def upload(self, request: Request, bundle: Bundle | None, progress: Progress = silent) -> Uploaded:
        """The code by its digest, and the spec."""
        return upload(self._services, request, bundle, progress)

    def create(self, request: Request) -> Description:
        """The service itself takes a name only once; botocore's own repetition may meet the job it has just made."""
        try:
            with asking(what := f"create training job {request.name}", self._region):
                answer = self._services.sagemaker.create_training_job(**request.native)
            expect(answer, "TrainingJobArn", what, self._region)
        except (NameTaken, UnreachableError) as error:
            seen = self._after(error, request)
            if seen is None:
                raise
            return seen
        return accepted(request.native, self._region)

    def find(self, request: Request) -> Description | None:
        """By its name; whether it is this one its fingerprint says."""
        try:
            seen = self.describe(request.name)
        except NotThere:
            return None
        if seen.fingerprint != text(request.native, "Environment", FINGERPRINT):
            raise RefusedError(
                f"{self._region} has a training job called {request.name} that is not this one: {seen.vendor_state}",
                hint="change the job's name, or delete that training job",
                cause="invalid",
            )
        return seen

    def describe(self, native_id: str) -> Description:
        """One call."""
        return described(self._asked(native_id), self._region)

    def stop(self, native_id: str) -> None:
        """What the service answers for a job that is over is not documented: its state says whether that was one."""
        try:
            stop = self._services.sagemaker.stop_training_job
            called(stop, f"stop training job {native_id}", self._region, TrainingJobName=native_id)
        except RefusedError as error:
            state = None if error.cause == "permission" else self.describe(native_id).state
            if state is None or not (state.is_final or state is State.STOPPING):
                raise

    def list(self, run_id: str | None = None) -> Iterator[Description]:
        """By their names, which the service can look for. A run's attempts are described in full, of all other jobs
        there is what a list of the service's holds: neither reason, fingerprint nor policy."""
        beginning = "-a" if run_id is None else names.beginning_of(run_id)
        if beginning is None:
            return
        for found in self._summaries(beginning):
            job = text(found, "TrainingJobName")
            if run_id is None and names.run_of(job):
                yield summarized(found, self._region)
            elif run_id is not None and job.startswith(beginning):
                yield from self._attempt_of(run_id, job)

    def logs(self, native_id: str, cursor: Cursor) -> LogPage:
        """From CloudWatch."""
        return LogReader(self._services.logs, self._region, native_id).page(cursor)

    def artefacts(self, native_id: str) -> Iterator[Artefact]:
        """From S3, where the job says that it leaves them."""
        yield from artefacts.artefacts(self._services.s3, self._asked(native_id), self._region)

    def fetch(self, artefact: Artefact, folder: Path, progress: Progress = silent) -> None:
        """Archives are unpacked."""
        artefacts.fetch(self._services.s3, artefact, folder, self._region, progress)

    def native_id(self, text: str) -> str:
        """A job's name, or its ARN."""
        return names.native_id(text, self._region)

    def close(self) -> None:
        """Of all of boto3's clients."""
        self._services.close()

    def _asked(self, name: str) -> Mapping[str, Any]:
        describe, what = self._services.sagemaker.describe_training_job, f"find training job {name}"
        found: Mapping[str, Any] = called(describe, what, self._region, "TrainingJobName", TrainingJobName=name)
        return found

    def _after(self, error: Exception, request: Request) -> Description | None:
        """The job, if it is there though creating it has failed. Nobody knows whether a request whose answer was lost
        has been done."""
        try:
            return self.find(request)
        except UnreachableError:
            raise error from None

    def _attempt_of(self, run_id: str, job: str) -> Iterator[Description]:
        try:
            seen = self.describe(job)
        except NotThere:  # deleted meanwhile
            return
        if seen.run_id == run_id:
            yield seen

    def _summaries(self, beginning: str) -> Iterator[Mapping[str, Any]]:
        """A page may be short, or empty, and more may follow: only the token says that there is none."""
        tokens, token = Tokens("list training jobs"), ""
        while True:
            answer = called(
                self._services.sagemaker.list_training_jobs,
                "list training jobs",
                self._region,
                "TrainingJobSummaries",
                NameContains=beginning,
                SortBy="CreationTime",
                SortOrder="Descending",
                MaxResults=_PAGE,
                **({"NextToken": token} if token else {}),
            )
            yield from entries(answer, "TrainingJobSummaries")
            token = tokens.next(text(answer, "NextToken"))
            if not token:
                return
            time.sleep(_LIST_SECONDS)
