"""The HTTP surface: JobService of Vertex AI, Cloud Logging's ``entries:list``, and what containers ask for secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound
from werkzeug.routing import Map, RequestRedirect, Rule
from werkzeug.wrappers import Request, Response

from cloudtrain.emulator.vertex import metadata
from cloudtrain.emulator.vertex.errors import HTTP_STATUS, ServiceError, envelope
from cloudtrain.emulator.vertex.jobs import Place
from cloudtrain.emulator.vertex.logs import EntryLog
from cloudtrain.emulator.vertex.messages import rendered
from cloudtrain.emulator.vertex.secret_manager import SecretManager
from cloudtrain.emulator.vertex.service import JobService

_JOBS, _SECRETS = "projects/<project>/locations/<location>/customJobs", "projects/<project>/secrets"
# gcloud describes and lists by v1beta1, in which CustomJobs are the same.
CALLS = Map(
    [
        rule
        for version in ("/v1", "/v1beta1")
        for rule in (
            Rule(f"{version}/{_JOBS}", endpoint="CreateCustomJob", methods=["POST"]),
            Rule(f"{version}/{_JOBS}", endpoint="ListCustomJobs", methods=["GET"]),
            Rule(f"{version}/{_JOBS}/<job>", endpoint="GetCustomJob", methods=["GET"]),
            Rule(f"{version}/{_JOBS}/<job>", endpoint="DeleteCustomJob", methods=["DELETE"]),
            Rule(f"{version}/{_JOBS}/<job>:cancel", endpoint="CancelCustomJob", methods=["POST"]),
        )
    ]
    + [
        Rule("/v2/entries:list", endpoint="ListLogEntries", methods=["POST"]),
        Rule(f"/v1/{_SECRETS}", endpoint="CreateSecret", methods=["POST"]),
        Rule(f"/v1/{_SECRETS}/<secret>:addVersion", endpoint="AddSecretVersion", methods=["POST"]),
        Rule(f"/v1/{_SECRETS}/<secret>/versions/<version>:access", endpoint="AccessSecretVersion", methods=["GET"]),
    ],
    strict_slashes=False,
    merge_slashes=False,
)
_NUMBER = re.compile(r"[0-9]{1,9}")


class Rest:
    """Calls by HTTP."""

    def __init__(self, jobs: JobService, log: EntryLog) -> None:
        self._jobs = jobs
        self._log = log
        self._secrets = SecretManager()

    def operation(self, environ: Mapping[str, Any]) -> str:
        """The call's name; "" where there is none."""
        try:
            return str(CALLS.bind_to_environ(dict(environ)).match()[0])
        except HTTPException:
            return ""

    def answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """The WSGI application."""
        request = Request(environ)
        if (found := metadata.answer(request.path)) is not None and request.method == "GET":
            kind = "application/json" if found.startswith("{") else "application/text"
            return Response(found, 200, metadata.HEADERS, content_type=kind)(environ, start_response)
        try:
            content = self._content(request)
            response = Response(json.dumps(content, indent=2), 200, content_type="application/json; charset=UTF-8")
        except ServiceError as error:
            response = _refusal(HTTP_STATUS[error.code], error.code, error.message)
        return response(environ, start_response)

    def _content(self, request: Request) -> Any:
        """What is answered, as JSON. Raises ServiceError."""
        operation, names = _matched(request)
        if operation == "ListLogEntries":
            return self._list_entries(_body(request))
        if "location" not in names:
            return self._secret(operation, request, **names)
        place = Place(names["project"], names["location"])
        name = f"{place.parent}/customJobs/{names.get('job', '')}"
        integers = "enum-encoding=int" in request.args.get("$alt", "")
        if operation == "CreateCustomJob":
            return rendered(self._jobs.create(place, _body(request)), integers=integers)
        if operation == "GetCustomJob":
            return rendered(self._jobs.get(name), integers=integers)
        if operation == "ListCustomJobs":
            return self._list_jobs(place, request.args, integers)
        if operation == "CancelCustomJob":
            self._jobs.cancel(name)
            return {}
        return self._jobs.delete(name)

    def _secret(self, operation: str, request: Request, project: str, secret: str = "", version: str = "") -> Any:
        if operation == "CreateSecret":
            return self._secrets.create(project, request.args.get("secretId", ""))
        if operation == "AddSecretVersion":
            return self._secrets.add(project, secret, _body(request))
        return self._secrets.access(project, secret, version)

    def _list_jobs(self, place: Place, args: Mapping[str, str], integers: bool) -> dict[str, Any]:
        size = _number(args.get("pageSize", "0"), "page_size")
        page = self._jobs.list(place, args.get("filter", ""), size, args.get("pageToken", ""))
        mask = [field.partition(".")[0] for field in args.get("readMask", "").split(",") if field]
        jobs = [rendered(job, integers=integers) for job in page.jobs]
        shown = [{name: value for name, value in job.items() if not mask or name in mask} for job in jobs]
        found: dict[str, Any] = {"customJobs": shown} if shown else {}
        return {**found, "nextPageToken": page.next_token} if page.next_token else found

    def _list_entries(self, body: Any) -> dict[str, Any]:
        if not isinstance(body, dict):
            raise ServiceError("INVALID_ARGUMENT", "Invalid JSON payload received. Expected an object.")
        names = [str(name).partition("/")[2].partition("/")[0] for name in body.get("resourceNames", ())]
        if not any(names):
            raise ServiceError("INVALID_ARGUMENT", "resource_names must name a project")
        size = _number(str(body.get("pageSize", 0)), "page_size")
        filter_, order, token = (str(body.get(name) or "") for name in ("filter", "orderBy", "pageToken"))
        page = self._log.list(names, filter_, order, size, token)
        found: dict[str, Any] = {"entries": page.entries} if page.entries else {}
        return {**found, "nextPageToken": page.next_token} if page.next_token else found


def _refusal(status: int, code: str, message: str) -> Response:
    return Response(envelope(status, code, message), status, content_type="application/json; charset=UTF-8")


def _matched(request: Request) -> tuple[str, Mapping[str, Any]]:
    try:
        operation, names = CALLS.bind_to_environ(request.environ).match()
    except MethodNotAllowed as error:
        raise ServiceError("METHOD_NOT_ALLOWED", f"{request.method} is not supported for {request.path}") from error
    except (NotFound, RequestRedirect) as error:
        raise ServiceError("NOT_FOUND", f"There is nothing at {request.path}") from error
    return str(operation), names


def _body(request: Request) -> Any:
    try:
        return json.loads(request.get_data() or b"{}")
    except ValueError as error:
        raise ServiceError("INVALID_ARGUMENT", f"Invalid JSON payload received. {error}") from error


def _number(text: str, name: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ServiceError("INVALID_ARGUMENT", f"{name} must be a number, not {text!r}")
    return int(text)
