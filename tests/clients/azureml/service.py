"""Azure ML's surface as far as the client asks for it, behind TLS: strict about what it is asked, and told what to say.

It runs nothing. Paths, API versions and answers are those that azure-ai-ml 1.35.2 was seen to use; whatever else is
asked, or asked without a token, is kept in ``complaints``.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import trustme
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

from cloudtrain.providers.azureml.snapshot import snapshot_name
from cloudtrain.providers.base import Request as CloudRequest
from tests.clients.azureml.answers import Fault, error
from tests.providers.contexts import ACCOUNTS

ACCOUNT = ACCOUNTS["azureml"]
ARM_ID = (
    f"/subscriptions/{ACCOUNT['subscription']}/resourceGroups/{ACCOUNT['resource_group']}"
    f"/providers/Microsoft.MachineLearningServices/workspaces/{ACCOUNT['workspace']}"
)
_VERSIONS = {
    "GetJob": "2024-01-01-preview",
    "ListJobs": "2024-01-01-preview",
    "PutJob": "2025-01-01-preview",
    "CancelJob": "2023-04-01-preview",
    "GetCode": "2023-04-01",
    "ListCodes": "2023-04-01",
    "BeginCode": "2023-04-01",
    "PutCode": "2023-04-01",
    "PutEnvironment": "2023-04-01-preview",
    "GetDatastore": "2024-10-01-preview",
    "ListSecrets": "2024-10-01-preview",
    "GetWorkspace": "2024-10-01-preview",
    "GetDetails": None,
    "Discovery": None,
}
_ROUTES = (
    ("GET", r"/jobs/(?P<name>[^/]+)", "GetJob"),
    ("PUT", r"/jobs/(?P<name>[^/]+)", "PutJob"),
    ("POST", r"/jobs/(?P<name>[^/]+)/cancel", "CancelJob"),
    ("GET", r"/jobs", "ListJobs"),
    ("GET", r"/codes/(?P<name>[^/]+)/versions/1", "GetCode"),
    ("GET", r"/codes/(?P<name>[^/]+)/versions", "ListCodes"),
    ("PUT", r"/codes/(?P<name>[^/]+)/versions/1", "PutCode"),
    ("POST", r"/codes/(?P<name>[^/]+)/versions/1/startPendingUpload", "BeginCode"),
    ("PUT", r"/environments/(?P<name>CliV2AnonymousEnvironment)/versions/(?P<version>[0-9a-f]{64})", "PutEnvironment"),
    ("GET", r"/datastores/(?P<name>[^/]+)", "GetDatastore"),
    ("POST", r"/datastores/(?P<name>[^/]+)/listSecrets", "ListSecrets"),
    ("GET", r"", "GetWorkspace"),
)
_CHANGEABLE = {"description", "tags", "displayName", "properties", "isArchived"}


class _Call(NamedTuple):
    """What a handler is given."""

    names: dict[str, str]
    body: Any
    request: Request

    @property
    def name(self) -> str:
        return self.names["name"]


class Service:
    """What it holds is open to the tests. ``url`` once it is served."""

    def __init__(self) -> None:
        self.url = ""
        self.jobs: dict[str, dict[str, Any]] = {}
        self.codes: dict[str, dict[str, Any]] = {}
        self.details: dict[str, dict[str, Any]] = {}
        self.datastores: dict[str, dict[str, Any]] = {}
        self.secrets: dict[str, dict[str, Any]] = {}
        self.place_of_code: Callable[[str], tuple[str, str]] = lambda _: ("", "")
        """Gives the URI and the address with its right to write of a container for a snapshot."""
        self.asked: list[str] = []
        self.bodies: list[tuple[str, Any]] = []
        self.tokens: list[tuple[str, str]] = []
        """Operation and the token of the user whom a job is to run as."""
        self.complaints: list[str] = []
        self.page_size = 2
        self.endless = False
        """Whether a page of jobs is followed by itself."""
        self._faults: list[tuple[str, Fault, bool]] = []
        self._lock = threading.Lock()

    def will(self, operation: str, *faults: Fault, done: bool = False) -> None:
        """The next calls of ``operation`` are answered by ``faults``, in this order; with ``done`` they take effect."""
        self._faults += [(operation, fault, done) for fault in faults]

    def has_code(self, request: CloudRequest) -> None:
        """The snapshot of a request is there."""
        name = snapshot_name(request)
        self.codes[name] = {"id": f"{ARM_ID}/codes/{name}/versions/1", "properties": {"codeUri": "https://here/code"}}

    def has_job(self, name: str, status: str = "NotStarted", **properties: Any) -> dict[str, Any]:
        """A job is there. ``properties`` go over those of a small one."""
        self.jobs[name] = _job(name, {"jobType": "Command", "tags": {}, **properties})
        self.set(name, status)
        return self.jobs[name]

    def times(self, operation: str) -> int:
        """How often it was asked for."""
        return self.asked.count(operation)

    def set(self, name: str, status: str, **details: Any) -> None:
        """The state of a job, and what the run history is to add."""
        self.jobs[name]["properties"]["status"] = status
        self.details.setdefault(name, {"runId": name}).update({"status": status, **details})

    def __call__(self, environ: dict[str, Any], start: Any) -> Any:
        request = Request(environ)
        request.get_data()
        with self._lock:
            answer = self._answer(request)
        if answer is None:
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionError("the answer is lost")
        return answer(environ, start)

    def _answer(self, request: Request) -> Response | None:
        operation, names = self._operation(request)
        self.asked.append(operation)
        if token := request.headers.get("x-azureml-token"):
            self.tokens.append((operation, token))
        for number, (wanted, fault, done) in enumerate(self._faults):
            if wanted == operation:
                del self._faults[number]
                if done:
                    self._asked(operation, names, request)
                return fault(request)
        return self._asked(operation, names, request)

    def _operation(self, request: Request) -> tuple[str, dict[str, str]]:
        if request.path == "/discovery":
            return "Discovery", {}
        if request.authorization is None or request.authorization.type != "bearer":
            self.complaints.append(f"{request.method} {request.path}: without a token")
        history = re.fullmatch(rf"/history/v1\.0{re.escape(ARM_ID)}/runs/([^/]+)/details", request.path)
        if history:
            return "GetDetails", {"name": history[1]}
        raw = request.environ["REQUEST_URI"].partition("?")[0]  # a name is one step, whatever is in it
        path = raw.removeprefix(ARM_ID)
        for method, pattern, operation in _ROUTES:
            match = re.fullmatch(pattern, path)
            if match and method == request.method and path != raw:
                if request.args.get("api-version") != _VERSIONS[operation]:
                    self.complaints.append(f"{operation}: api-version {request.args.get('api-version')}")
                return operation, {key: unquote(value) for key, value in match.groupdict().items()}
        self.complaints.append(f"{request.method} {request.path}: no such call")
        return "Unknown", {}

    def _asked(self, operation: str, names: dict[str, str], request: Request) -> Response:
        if operation == "Unknown":
            return error(404, "InvalidResourceType", "no such call")
        body = request.get_json() if request.get_data() else None
        if body is not None:
            self.bodies.append((operation, body))
        made = getattr(self, f"_{operation}")(_Call(names, body, request))
        if isinstance(made, Response):
            return made
        return error(404, "NotFound", f"{names} was not found") if made is None else _json(made)

    def _GetWorkspace(self, _: _Call) -> Any:
        return {"id": ARM_ID, "properties": {"discoveryUrl": f"{self.url}/discovery"}}

    def _Discovery(self, _: _Call) -> Any:
        return {"api": self.url}

    def _GetJob(self, call: _Call) -> Any:
        return self.jobs.get(call.name)

    def _ListJobs(self, call: _Call) -> Any:
        first = int(call.request.args.get("$skip", "0"))
        ours = [job for job in reversed(self.jobs.values()) if call.request.args["tag"] in job["properties"]["tags"]]
        page: dict[str, Any] = {"value": ours[first : first + self.page_size]}
        if self.endless:
            page["nextLink"] = call.request.url
        elif first + self.page_size < len(ours):
            base = call.request.url.split("&%24skip")[0].split("&$skip")[0]
            page["nextLink"] = f"{base}&%24skip={first + self.page_size}"
        return page

    def _PutJob(self, call: _Call) -> Any:
        name, given = call.name, call.body["properties"]
        known = self.jobs.get(name)
        if known is not None:
            fixed = {key: value for key, value in given.items() if key not in _CHANGEABLE}
            if any(known["properties"].get(key) != value for key, value in fixed.items()):
                return error(400, "UserError", "A job with this name exists", "Immutable", "JobPropertyImmutable")
            known["properties"].update(given)
            return _json(known)
        self.jobs[name] = _job(name, given)
        return _json(self.jobs[name], 201)

    def _CancelJob(self, call: _Call) -> Any:
        if call.name in self.jobs:
            self.set(call.name, "CancelRequested")
            return Response("", 202, {"Location": f"{self.url}{ARM_ID}/operations/1", "Retry-After": "10"})
        return None

    def _GetCode(self, call: _Call) -> Any:
        return self.codes.get(call.name)

    def _ListCodes(self, call: _Call) -> Any:
        wanted = call.request.args.get("hash")
        hashes = {name: code["properties"]["properties"]["hash_sha256"] for name, code in self.codes.items()}
        return {"value": [self.codes[name] for name, found in hashes.items() if found == wanted]}

    def _BeginCode(self, call: _Call) -> Any:
        assert call.body == {"pendingUploadType": "TemporaryBlobReference"}
        uri, address = self.place_of_code(call.name)
        credential = {"credentialType": "SAS", "sasUri": address}
        return {"blobReferenceForConsumption": {"blobUri": uri, "credential": credential}, "pendingUploadId": "1"}

    def _PutCode(self, call: _Call) -> Any:
        name = call.name
        if name in self.codes and self.codes[name]["properties"]["codeUri"] != call.body["properties"]["codeUri"]:
            return error(400, "UserError", "The asset's path cannot be changed", "Immutable")
        self.codes[name] = {"id": f"{ARM_ID}/codes/{name}/versions/1", "name": "1", **call.body}
        return self.codes[name]

    def _PutEnvironment(self, call: _Call) -> Any:
        return {"id": f"{ARM_ID}/environments/{call.name}/versions/{call.names['version']}", **call.body}

    def _GetDatastore(self, call: _Call) -> Any:
        found = self.datastores.get(call.name)
        return found and {"name": call.name, "properties": found}

    def _ListSecrets(self, call: _Call) -> Any:
        assert call.body == {"expirableSecret": True, "expireAfterHours": 1}
        return self.secrets.get(call.name)

    def _GetDetails(self, call: _Call) -> Any:
        return self.details.get(call.name)


def _job(name: str, properties: dict[str, Any]) -> dict[str, Any]:
    studio = {"jobServiceType": "Studio", "endpoint": f"https://ml.azure.com/runs/{name}"}
    return {
        "id": f"{ARM_ID}/jobs/{name}",
        "name": name,
        "systemData": {"createdAt": "2026-11-30T12:00:00.1234567+00:00"},
        "properties": {"status": "NotStarted", **properties, "services": {"Studio": studio}},
    }


def _json(content: Any, status: int = 200) -> Response:
    return Response(json.dumps(content), status, content_type="application/json")


@contextmanager
def served(service: Service, folder: Path) -> Iterator[Path]:
    """Serve it; gives the file with the authority that its certificate is from."""
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server = make_server("127.0.0.1", 0, service, threaded=True, ssl_context=context)
    service.url = f"https://127.0.0.1:{server.port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    try:
        yield folder / "ca.pem"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
