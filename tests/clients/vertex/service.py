"""Google's services on loopback, as far as a client needs them: JobService by REST and gRPC, and Cloud Logging.

Strict in what it takes: requests are read by Google's own message types, filters word by word. Nothing happens by
itself: tests say how jobs stand, what lines there are, and what goes wrong.
"""

from __future__ import annotations

import bisect
import json
import re
import socket
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

_JOBS = re.compile(r"/v1/(projects/[^/]+/locations/[^/]+)/customJobs(?:/([0-9]+))?(:cancel)?")
_STATUS = {"INVALID_ARGUMENT": 400, "NOT_FOUND": 404, "PERMISSION_DENIED": 403, "RESOURCE_EXHAUSTED": 429}
_SAID = ("service", "ERROR")
_PAGE = 2
"""Jobs of a page, few, so that there are several."""


class Refused(Exception):
    """The service says no."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Trouble(NamedTuple):
    """What happens to one call of an operation: an error with ``status``, or a connection that is cut."""

    operation: str
    status: int = 0
    message: str = "something is wrong"
    done: bool = False
    """Whether the call takes effect before."""
    half: bool = False
    """Half of the answer comes."""


class Service:
    """The state of both services."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.bodies: list[Any] = []
        """JSON of the creates, as it came."""
        self.calls: list[str] = []
        self.troubles: list[Trouble] = []
        self.log = EntryLog()
        self.before_create: Callable[[], None] = lambda: None
        self.endless = False
        """Whether the last page of jobs is followed by the first."""
        self._lock = threading.RLock()

    def trouble(self, operation: str) -> Trouble | None:
        """Counts the call; what is to happen to it."""
        with self._lock:
            self.calls.append(operation)
            found = next((one for one in self.troubles if one.operation in (operation, "*")), None)
            if found:
                self.troubles.remove(found)
            return found

    def create(self, parent: str, native: Mapping[str, Any]) -> dict[str, Any]:
        """A job in the state QUEUED. ``native`` is in the canonical form."""
        if not native.get("displayName") or not native.get("jobSpec", {}).get("workerPoolSpecs"):
            raise Refused("INVALID_ARGUMENT", "List of found errors:\t1.Field: display_name; Message: Required.\t")
        self.before_create()
        with self._lock:
            number = str(4_000_000_000_000_000_000 + len(self.jobs))
            name = f"{parent.replace('my-project', '123456789')}/customJobs/{number}"
            made = {"createTime": f"2026-11-30T10:00:{len(self.jobs):02}.123456789Z", "state": "JOB_STATE_QUEUED"}
            self.jobs[number] = {"name": name, **native, **made}
            return self.jobs[number]

    def get(self, number: str) -> dict[str, Any]:
        """Raises Refused."""
        if number not in self.jobs:
            raise Refused("NOT_FOUND", f"The CustomJob {number} does not exist.")
        return self.jobs[number]

    def cancel(self, number: str) -> None:
        """This one refuses what is over."""
        if "endTime" in self.get(number):
            raise Refused("INVALID_ARGUMENT", "The CustomJob is in a final state.")
        self.jobs[number]["state"] = "JOB_STATE_CANCELLING"

    def list(self, chosen: str, token: str) -> tuple[list[dict[str, Any]], str]:
        """A page, oldest first; the token of the next."""
        fits = _filter_of(chosen)
        found = [job for job in self.jobs.values() if fits(job)]
        start = int(token or 0)
        last = "0" if self.endless else ""
        return found[start : start + _PAGE], str(start + _PAGE) if len(found) > start + _PAGE else last


def _filter_of(chosen: str) -> Callable[[Mapping[str, Any]], bool]:
    conditions = []
    for part in chosen.split(" AND "):
        found = re.fullmatch(r'(display_name|labels\.[a-z_]+)(?:="([^"\\]*)"|(:\*))', part)
        if found is None:
            raise Refused("INVALID_ARGUMENT", f"Invalid filter: {part}")
        conditions.append(found.groups())

    def fits(job: Mapping[str, Any]) -> bool:
        return all(_value(job, field) is not None if some else _value(job, field) == value
                   for field, value, some in conditions)  # fmt: skip

    return fits


def _value(job: Mapping[str, Any], field: str) -> Any:
    if field == "display_name":
        return job.get("displayName")
    return job.get("labels", {}).get(field.removeprefix("labels."))


class EntryLog:
    """Entries of Cloud Logging."""

    def __init__(self) -> None:
        self.empty_pages = False
        self.shuffled = False
        self.asked: list[dict[str, Any]] = []
        self._by_job: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
        self._lock = threading.Lock()

    def add(self, job: str, task: str, text: str, *, at: str, number: int, **changes: Any) -> dict[str, Any]:
        """One entry of a job's number and a task. ``at``: its timestamp."""
        entry: dict[str, Any] = {
            "logName": f"projects/my-project/logs/{task}",
            "resource": {"type": "ml_job", "labels": {"job_id": job, "task_name": task}},
            "timestamp": at,
            "receiveTimestamp": at,
            "severity": "INFO",
            "insertId": f"{number:012}",
            "jsonPayload": {"message": text},
            **changes,
        }
        self.show({name: value for name, value in entry.items() if value is not None})
        return entry

    def show(self, entry: dict[str, Any]) -> None:
        """From now on."""
        kept = self._by_job.setdefault(entry["resource"]["labels"]["job_id"], [])
        with self._lock:
            bisect.insort(kept, (_padded(entry["timestamp"]), entry["insertId"], entry), key=lambda one: one[:2])

    def take(self, job: str, place: int) -> dict[str, Any]:
        """Hide an entry."""
        with self._lock:
            return self._by_job[job].pop(place)[2]

    def list(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """``entries:list``."""
        self.asked.append(dict(asked))
        unknown = set(asked) - {"resourceNames", "filter", "orderBy", "pageSize", "pageToken"}
        size = asked.get("pageSize", 50)
        if unknown or not 0 < size <= 1000 or asked["resourceNames"] != ["projects/my-project"]:
            raise Refused("INVALID_ARGUMENT", f"bad request {asked}")
        found = re.fullmatch(
            r'resource\.type="ml_job" AND resource\.labels\.job_id="([0-9]+)"'
            r'( AND resource\.labels\.task_name="service" AND severity>=ERROR)? AND timestamp>="([^"]+)"'
            r'(?: AND timestamp<="([^"]+)")?(?: AND \(receiveTimestamp>="([^"]+)" OR timestamp>"([^"]+)"\))?',
            asked["filter"],
        )
        if found is None:
            raise Refused("INVALID_ARGUMENT", f"bad filter {asked['filter']}")
        job, errors, first, last, received, told = found.groups()
        with self._lock:
            kept = self._by_job.get(job, [])
            low = bisect.bisect_left(kept, _padded(first), key=lambda one: one[0])
            high = bisect.bisect_right(kept, _padded(last or "9999-12-31T23:59:59Z"), key=lambda one: one[0])
            chosen = [entry for written, _, entry in kept[low:high]
                      if (not errors or (entry["resource"]["labels"]["task_name"], entry["severity"]) == _SAID)
                      and (not received or _padded(entry["receiveTimestamp"]) >= _padded(received)
                           or written > _padded(told))]  # fmt: skip
        return self._page(chosen, asked["orderBy"], size, asked.get("pageToken", ""))

    def _page(self, chosen: list[dict[str, Any]], order: str, size: int, token: str) -> dict[str, Any]:
        start, _, was_empty = token.partition("/")
        if self.empty_pages and not was_empty:
            return {"nextPageToken": f"{start or 0}/empty"}
        begin = int(start or 0)
        page = (chosen[::-1] if order == "timestamp desc" else chosen)[begin : begin + size]
        if self.shuffled and order == "timestamp asc":
            page = page[::-1]
        more = {"nextPageToken": str(begin + size)} if len(chosen) > begin + size else {}
        return ({"entries": page} if page else {}) | more


def _padded(moment: str) -> str:
    """Times that can be compared as text."""
    whole, _, rest = moment.removesuffix("Z").partition(".")
    return f"{whole}.{rest:0<9}"


def custom_job() -> Any:
    """Google's message type."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from google.cloud.aiplatform_v1.types.custom_job import CustomJob
    return CustomJob.pb()


def canonical(body: Any) -> dict[str, Any]:
    """A CustomJob as protobuf's JSON has it: enums by name. Raises Refused for what no message has."""
    from google.protobuf import json_format

    try:
        found: dict[str, Any] = json_format.MessageToDict(json_format.ParseDict(body, custom_job()()))
    except json_format.ParseError as error:
        raise Refused("INVALID_ARGUMENT", str(error)) from error
    return found


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _answer(self) -> None:
        service = self.server.service
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        operation, call = _routed(service, self.command, self.path, body)
        trouble = service.trouble(operation)
        status, content = 200, {}
        try:
            if trouble is None or trouble.done or trouble.half:
                content = call()
        except Refused as error:
            status = _STATUS[error.code]
            content = {"error": {"code": status, "message": error.message, "status": error.code}}
        if trouble and trouble.status:
            status = trouble.status
            content = {"error": {"code": status, "message": trouble.message, "status": "WHATEVER"}}
        self._send(status, json.dumps(content).encode(), cut=bool(trouble and not trouble.status),
                   half=bool(trouble and trouble.half))  # fmt: skip

    def _send(self, status: int, content: bytes, *, cut: bool, half: bool) -> None:
        if not cut or half:
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=UTF-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if half else content)
        if cut:
            self.wfile.flush()
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True


def _routed(service: Service, method: str, target: str, body: bytes) -> tuple[str, Callable[[], Any]]:
    parts = urlsplit(target)
    query = parse_qs(parts.query)
    if parts.path == "/v2/entries:list" and method == "POST":
        return "ListLogEntries", lambda: service.log.list(json.loads(body))
    found = _JOBS.fullmatch(parts.path)
    if found is None:
        raise AssertionError(f"{method} {target}")
    parent, number, cancels = found.groups()
    if cancels:
        return "CancelCustomJob", lambda: service.cancel(number) or {}
    if number:
        return "GetCustomJob", lambda: service.get(number)
    if method == "POST":

        def create() -> Any:
            service.bodies.append(json.loads(body))
            return service.create(parent, canonical(service.bodies[-1]))

        return "CreateCustomJob", create

    def listed() -> Any:
        jobs, token = service.list(query["filter"][0], query.get("pageToken", [""])[0])
        return {"customJobs": jobs, **({"nextPageToken": token} if token else {})}

    return "ListCustomJobs", listed


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, service: Service) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.service = service

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients may go whenever they like."""


@contextmanager
def by_rest(service: Service) -> Iterator[str]:
    """Its URL."""
    server = _Server(service)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def by_grpc(service: Service, certificate: tuple[bytes, bytes] | None = None) -> Iterator[str]:
    """Its address, with grpc:// before it, or https:// behind a certificate (key and chain): JobService alone."""
    from concurrent.futures import ThreadPoolExecutor

    import grpc

    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((_handlers(service),))
    if certificate:
        port = server.add_secure_port("localhost:0", grpc.ssl_server_credentials([certificate]))
    else:
        port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"https://localhost:{port}" if certificate else f"grpc://127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def _handlers(service: Service) -> Any:
    import grpc
    from google.protobuf import empty_pb2, json_format

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from google.cloud.aiplatform_v1.types import job_service as types

    def answered(job: Mapping[str, Any]) -> Any:
        state = job["state"]
        known = {**job, "state": state if state in _names() else 99}
        return json_format.ParseDict(known, custom_job()())

    def create(request: Any) -> Any:
        native = json_format.MessageToDict(request.custom_job)
        service.bodies.append(native)
        return answered(service.create(request.parent, native))

    def listed(request: Any) -> Any:
        jobs, token = service.list(request.filter, request.page_token)
        return types.ListCustomJobsResponse.pb()(custom_jobs=map(answered, jobs), next_page_token=token)

    def cancel(request: Any) -> Any:
        service.cancel(request.name.rpartition("/")[2])
        return empty_pb2.Empty()

    calls: dict[str, tuple[Any, Callable[[Any], Any]]] = {
        "CreateCustomJob": (types.CreateCustomJobRequest, create),
        "GetCustomJob": (
            types.GetCustomJobRequest,
            lambda request: answered(service.get(request.name.rpartition("/")[2])),
        ),
        "ListCustomJobs": (types.ListCustomJobsRequest, listed),
        "CancelCustomJob": (types.CancelCustomJobRequest, cancel),
    }
    by_status = {
        0: "UNAVAILABLE", 400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED",
        429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
    }  # fmt: skip

    def handler(operation: str) -> Any:
        kind, call = calls[operation]

        def run(request: Any, context: Any) -> Any:
            trouble = service.trouble(operation)
            try:
                if trouble is None or trouble.done or trouble.half:
                    answer = call(request)
            except Refused as error:
                context.abort(getattr(grpc.StatusCode, error.code), error.message)
            if trouble:
                message = trouble.message if trouble.status else "Socket closed"
                context.abort(getattr(grpc.StatusCode, by_status[trouble.status]), message)
            return answer

        return grpc.unary_unary_rpc_method_handler(
            run,
            request_deserializer=kind.pb().FromString,
            response_serializer=lambda answer: answer.SerializeToString(),
        )

    return grpc.method_handlers_generic_handler(
        "google.cloud.aiplatform.v1.JobService", {operation: handler(operation) for operation in calls}
    )


def _names() -> Any:
    return custom_job().DESCRIPTOR.fields_by_name["state"].enum_type.values_by_name
