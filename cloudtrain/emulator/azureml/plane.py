"""Azure ML on loopback: ARM, run history and Blob storage, for the vendor's own client and for cloudtrain's.

routes.py       the calls                         holdings.py, service.py   what each does
body.py         a job as it comes over the wire   wire.py       the same as the form of the vendor's CLI
admission.py    what is refused                   errors.py     in which words
workspace.py, assets.py, blobs.py, vault.py       what there is: clusters, code, environments, files, secrets
jobs.py, endings.py                               a job as it is shown, and how it ends
life.py         its states and starts             nodefolders.py, mounts.py, logfiles.py   what its nodes find and leave
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Request, Response

from cloudtrain.emulator.azureml import holdings, routes
from cloudtrain.emulator.azureml.asked import Answer, Calls, asked
from cloudtrain.emulator.azureml.assets import Codes, Environments
from cloudtrain.emulator.azureml.blobs import ACCOUNT, KEY, Blobs, load_client
from cloudtrain.emulator.azureml.errors import ServiceError, code_of, envelope
from cloudtrain.emulator.azureml.service import Service
from cloudtrain.emulator.azureml.vault import Vault
from cloudtrain.emulator.azureml.workspace import RESOURCE_GROUP, SUBSCRIPTION, WORKSPACE, Workspace
from cloudtrain.emulator.base import Site, TakenJob
from cloudtrain.emulator.servers import Server, azurite


class Call(NamedTuple):
    """One call that was received."""

    operation: str
    """"" for one that the service does not have."""
    method: str
    path: str
    api_version: str


class AzureMlPlane:
    """See ``emulator.base.Plane``. ``requests``: the bodies of the jobs that were received; ``forms``: the same as the
    forms that they were made of, which is what ``render`` shows. ``calls``: all calls, in their order."""

    needs_tls = True
    """The vendor's client sends tokens to no other address."""

    def __init__(self, site: Site) -> None:
        self.requests: list[dict[str, Any]] = []
        self.forms: list[dict[str, Any]] = []
        self.calls: list[Call] = []
        self._site = site
        self._calls: Calls = {}
        self._workspace: Workspace | None = None
        self._service: Service | None = None
        self._vault: Vault | None = None
        self._blobs: Blobs | None = None
        self._azurite: Server | None = None
        self._lock = threading.Lock()

    def opened(self, url: str) -> Mapping[str, str]:
        """See the protocol. Raises MissingError without azurite or Microsoft's client for it."""
        self._azurite = azurite(self._site.folder / "azurite")
        load_client()  # meanwhile
        self._azurite.wait()
        self._blobs = Blobs(self._azurite.url, ACCOUNT, KEY)
        self._vault = Vault()
        self._workspace = Workspace(self._blobs, self._vault, url)
        codes, environments = Codes(self._workspace), Environments(self._workspace)
        self._service = Service(self._site, self._workspace, codes, environments, self._on_job)
        self._calls = {**holdings.calls(self._workspace, codes, environments), **self._service.calls()}
        return {
            "AZUREML_DEV_URL_MFE": url,
            "CLOUDTRAIN_ENDPOINT_AZUREML": url,
            "CLOUDTRAIN_ENDPOINT_BLOB": f"{self.blob_server}/{{}}",
            "CLOUDTRAIN_ENDPOINT_VAULT": self._vault.url,
            "CLOUDTRAIN_AZUREML_SUBSCRIPTION": SUBSCRIPTION,
            "CLOUDTRAIN_AZUREML_RESOURCE_GROUP": RESOURCE_GROUP,
            "CLOUDTRAIN_AZUREML_WORKSPACE": WORKSPACE,
        }

    @property
    def blob_server(self) -> str:
        """Where the storage account answers."""
        assert self._azurite, "the plane is asked before it has been opened"
        return self._azurite.url

    def jobs(self) -> list[TakenJob]:
        """See the protocol."""
        return self._service.jobs() if self._service else []

    def close(self) -> None:
        """See the protocol."""
        for part in (self._service, self._vault, self._blobs, self._azurite):
            if part is not None:
                part.close()

    def operation(self, environ: Mapping[str, Any]) -> str:
        """See the protocol: the name in Microsoft's API description, such as ``Jobs_CreateOrUpdate``."""
        try:
            return routes.matched(environ)[0]
        except HTTPException:
            return ""

    def fault_response(self, status: int, code: str, message: str) -> tuple[bytes, Mapping[str, str]]:
        """See the protocol. ARM's code goes with the status; ``code`` is the fault's own name."""
        headers = {"Content-Type": "application/json; charset=utf-8"}
        if status == 429:
            headers["Retry-After"] = "1"
        return json.dumps(envelope(code_of(status), message, target=code)).encode(), headers

    def app(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """See the protocol."""
        request = Request(environ)
        self._record(request)
        try:
            answer = self._answer(request)
        except ServiceError as error:
            answer = Answer(error.status, error.body)
        except HTTPException as error:
            text = f"No HTTP resource was found that matches {request.method} {request.path}"
            answer = Answer(error.code or 404, envelope(code_of(error.code or 404), text))
        content = b"" if answer.body is None else json.dumps(answer.body).encode()
        return Response(content, answer.status, mimetype="application/json")(environ, start_response)

    def _answer(self, request: Request) -> Answer:
        operation, names = routes.matched(request.environ)
        if operation not in routes.OPEN:
            kind, _, token = request.headers.get("Authorization", "").partition(" ")
            if kind.lower() != "bearer" or not token.strip():
                text = "Authentication failed. The 'Authorization' header is missing."
                raise ServiceError(401, text, code="AuthenticationFailed")
        if "resourceGroups" in request.path and "history" not in request.path and not request.args.get("api-version"):
            text = "The api-version query parameter (?api-version=) is required for all requests."
            raise ServiceError(400, text, code="MissingApiVersionParameter")
        if "workspace" in names:
            self._check_workspace(names)
        return self._calls[operation](asked(request, names))

    def _on_job(self, received: dict[str, Any], form: dict[str, Any]) -> None:
        self.requests.append(received)
        self.forms.append(form)

    def _check_workspace(self, names: Mapping[str, str]) -> None:
        assert self._workspace, "the plane is asked before it has been opened"
        if not self._workspace.owns(names["subscription"], names["group"], names["workspace"]):
            text = (
                f"The Resource 'Microsoft.MachineLearningServices/workspaces/{names['workspace']}' under resource "
                f"group '{names['group']}' was not found."
            )
            raise ServiceError(404, text)

    def _record(self, request: Request) -> None:
        operation = self.operation(request.environ)
        with self._lock:
            version = request.args.get("api-version", "")
            self.calls.append(Call(operation, request.method, request.path, version))


def open_plane(site: Site) -> AzureMlPlane:
    """The plane, not yet opened."""
    return AzureMlPlane(site)
