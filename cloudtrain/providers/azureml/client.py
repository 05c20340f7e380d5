"""The port to Azure ML.

endpoints.py, credentials.py   where the service is, and who calls
calls.py, workspace.py         what is read: jobs, code, datastores, the run history, over azure-core
creation.py                    jobs are made by azure-ai-ml, the vendor's own client
snapshot.py, files.py, store.py   what travels, over azure-storage-blob
states.py, describing.py, logs.py, errors.py   what the answers mean; no calls

The vendor's ``jobs.stream`` and ``jobs.download`` are not used: the one shows rank 0 alone and ends without a word when
a job is cancelled, the other looks for outputs at places it guesses.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloudtrain.errors import MissingError, NotFoundError, RefusedError, SpecError
from cloudtrain.providers.azureml.folders import FOLDERS, OURS
from cloudtrain.providers.azureml.form import LONGEST_NAME
from cloudtrain.providers.port import Artefact, Cursor, Description, LogPage, Progress, Uploaded, silent
from cloudtrain.providers.reading import section, text
from cloudtrain.providers.registry import EXTRAS
from cloudtrain.providers.vendor import importing
from cloudtrain.record.state import State
from cloudtrain.spec.problems import shown

if TYPE_CHECKING:
    from cloudtrain.bundle import Bundle
    from cloudtrain.providers.azureml.store import Store
    from cloudtrain.providers.base import Request

_NAME = rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{LONGEST_NAME - 1}}}"
_ARM_ID = (
    r"(?i:(?:azureml:)?/subscriptions/(?P<subscription>[^/]+)/resourceGroups/(?P<resource_group>[^/]+)"
    r"/providers/Microsoft\.MachineLearningServices/workspaces/(?P<workspace>[^/]+)/jobs/)(?P<name>[^/]+)"
)
_NOWHERE = logging.NullHandler()
"""Without a handler of anybody's, warnings of the vendor's packages go to standard error; what matters of them is
raised as well."""
_STUDIO = r"https://ml\.azure\.[^/]+/(?:[^?#]*/)?runs/(?P<name>[^/?#]+).*"


def connect(account: Mapping[str, str]) -> AzureMLClient:
    """The port to the workspace that ``account`` names. Nothing is called yet. Raises MissingError."""
    return AzureMLClient(account)


class AzureMLClient:
    """See ``port.Client``."""

    poll_seconds = 5.0
    settle_seconds = 20.0

    def __init__(self, account: Mapping[str, str]) -> None:
        with _loading():
            from cloudtrain.providers.azureml.workspace import Workspace
        logging.getLogger("azure").addHandler(_NOWHERE)
        from cloudtrain.providers.azureml.credentials import credential_for
        from cloudtrain.providers.azureml.endpoints import endpoints

        self._account = account
        self._endpoints = endpoints(os.environ)
        self._credential = credential_for(self._endpoints)
        self._workspace = Workspace(account, self._endpoints, self._credential)
        self._opened: Store | None = None
        self._codes: dict[str, str] = {}
        """Snapshots that were seen to be there, and their ids."""

    def upload(self, request: Request, bundle: Bundle | None, progress: Progress = silent) -> Uploaded:
        """See the port."""
        store = self._store
        from cloudtrain.providers.azureml.files import behind, ship_data, ship_spec
        from cloudtrain.providers.azureml.snapshot import ship, snapshot_name

        spec = ship_spec(store, request, progress)  # first: little is lost where the datastore takes nothing
        data = ship_data(store, request, behind(spec.sent, progress))
        code = ship(self._workspace, request, bundle, behind(spec.sent + data.sent, progress))
        self._codes[snapshot_name(request)] = code.id
        parts = (spec, data, code.uploaded)
        return Uploaded(sum(part.sent for part in parts), sum(part.present for part in parts))

    def create(self, request: Request) -> Description:
        """See the port."""
        from cloudtrain.providers.azureml.creation import Creator
        from cloudtrain.providers.azureml.snapshot import snapshot_name

        if (known := self.find(request)) is not None:
            return known
        name = snapshot_name(request)
        code = self._codes.get(name) or text(self._workspace.code(name), "id")
        if not code:
            raise MissingError(f"the code of {request.name} has not been uploaded", hint="Submit the job anew.")
        form = {**request.native, "code": f"azureml:{code}"}
        creator = Creator(self._account, self._endpoints, self._credential)
        made = creator.create(request.name, form, lambda: self.find(request))
        return made or _not_seen_yet(request)

    def find(self, request: Request) -> Description | None:
        """See the port."""
        from cloudtrain.providers.azureml.describing import description
        from cloudtrain.providers.nodes import FINGERPRINT

        job = self._workspace.job(request.name)
        if job is None:
            return None
        fingerprint = text(job, "properties", "environmentVariables", FINGERPRINT)
        if fingerprint != section(request.native, "environment_variables").get(FINGERPRINT):
            raise RefusedError(
                f"another job of workspace {self._workspace.name} is called {request.name}",
                hint="Give the job another name.",
                cause="invalid",
            )
        return description(job, self._details(job))

    def describe(self, native_id: str) -> Description:
        """See the port."""
        from cloudtrain.providers.azureml.describing import description

        job = self._job(native_id)
        return description(job, self._details(job))

    def stop(self, native_id: str) -> None:
        """See the port. What the service answers for a job that is over is not known: the job is looked at."""
        try:
            asked = self._workspace.cancel(native_id)
        except RefusedError:
            state = self.describe(native_id).state
            if not state.is_final and state is not State.STOPPING:
                raise
        else:
            if asked is None:
                self._job(native_id)

    def list(self, run_id: str | None = None) -> Iterator[Description]:
        """See the port. The service has the newest jobs first; the attempts of one run are put in order here."""
        from cloudtrain.providers.azureml.describing import description

        ours = (description(job, {}) for job in self._workspace.jobs(f"{OURS}run"))
        if run_id is None:
            yield from (job for job in ours if job.run_id)
        else:
            yield from sorted((job for job in ours if job.run_id == run_id), key=_age)

    def logs(self, native_id: str, cursor: Cursor) -> LogPage:
        """See the port."""
        from cloudtrain.providers.azureml.logs import page
        from cloudtrain.providers.azureml.states import state_of

        details = self._workspace.details(native_id)
        if details is None:
            self._job(native_id)
            details = {}
        over = state_of(text(details, "status")).is_final
        return page(self._workspace.files, details, cursor, over=over)

    def artefacts(self, native_id: str) -> Iterator[Artefact]:
        """See the port. From the places that the job itself names, not from those where the service might put it."""
        store = self._store
        from cloudtrain.providers.azureml.store import place_of, source_of

        for output, said in section(self._job(native_id), "properties", "outputs").items():
            if output in FOLDERS:
                kind = FOLDERS[output][1]
            elif output == "default":  # the service's own
                continue
            else:
                kind = f"outputs/{output}"
            place = place_of(text(said, "uri"))
            if place is None:
                continue
            for blob in store.blobs(place):
                yield Artefact(kind, blob.name[len(place.path) :], blob.size, source_of(blob))

    def fetch(self, artefact: Artefact, folder: Path, progress: Progress = silent) -> None:
        """See the port."""
        store = self._store
        from cloudtrain.providers.azureml.store import blob_of

        store.fetch(blob_of(artefact.source), folder, artefact.path, progress)

    def native_id(self, text: str) -> str:
        """See the port: a name, an ARM id of this workspace, or the address of the job's page."""
        found = re.fullmatch(_ARM_ID, text)
        for part, wanted in self._account.items():
            if found and part in found.groupdict() and found[part].lower() != wanted.lower():
                raise SpecError(f"{shown(text)} is in {part} {found[part]}; the settings say {wanted}")
        page = re.fullmatch(_STUDIO, text)
        name = found["name"] if found else page["name"] if page else text
        if not re.fullmatch(_NAME, name):
            raise SpecError(f"{shown(text)} is no name of an Azure ML job, and no id of one")
        return name

    def close(self) -> None:
        """Give all connections back."""
        if self._opened is not None:
            self._opened.close()
        self._workspace.close()

    @property
    def _store(self) -> Store:
        """Whoever only looks at jobs does without: loading the blob client costs as much again as all the rest."""
        if self._opened is None:
            with _loading():
                from cloudtrain.providers.azureml.store import Store
            self._opened = Store(self._workspace, self._endpoints, self._credential)
        return self._opened

    def _job(self, name: str) -> Mapping[str, Any]:
        job: Mapping[str, Any] | None = self._workspace.job(name)
        if job is None:
            raise NotFoundError(f"there is no job {shown(name)} in workspace {self._workspace.name}", cause="invalid")
        return job

    def _details(self, job: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the run history adds: nothing before a job runs."""
        from cloudtrain.providers.azureml.states import state_of

        if state_of(text(job, "properties", "status")) in (State.PENDING, State.PROVISIONING):
            return {}
        return self._workspace.details(text(job, "name")) or {}


@contextmanager
def _loading() -> Iterator[None]:
    """Around the import of modules that load the vendor's packages."""
    try:
        with importing():
            yield
    except ImportError as error:
        raise MissingError(f"Azure's packages cannot be loaded: {error}", hint=EXTRAS["azureml"]) from error


def _age(job: Description) -> tuple[float, int]:
    return (-(job.created or 0.0), -job.attempt)


def _not_seen_yet(request: Request) -> Description:
    """A job that was taken and that the service does not show yet."""
    from cloudtrain.providers.nodes import FINGERPRINT

    return Description(
        provider="azureml",
        native_id=request.name,
        name=request.name,
        state=State.PENDING,
        vendor_state="(none)",
        run_id=str(request.spec.get("run_id", "")),
        fingerprint=text(request.native, "environment_variables", FINGERPRINT),
    )
