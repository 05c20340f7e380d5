"""The same calls by gRPC: Google's clients speak it if nothing else is asked for, and only behind TLS.

So the server has a certificate for localhost, of an authority of its own. ``GRPC_DEFAULT_SSL_ROOTS_FILE_PATH`` makes
gRPC trust it; a client still has to be told the address (``client_options={"api_endpoint": "localhost:PORT"}``).
Messages are read and written by the vendor's types, which are loaded by the first call.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from cloudtrain.emulator.faults import Faults
from cloudtrain.emulator.vertex.errors import ServiceError, code_of
from cloudtrain.emulator.vertex.jobs import Place
from cloudtrain.emulator.vertex.logs import EntryLog
from cloudtrain.emulator.vertex.messages import as_json, as_message
from cloudtrain.emulator.vertex.service import JobService

_HOST = "localhost"
_THREADS = 8
_NAME = re.compile(r"projects/([^/]+)/locations/([^/]+)(?:/customJobs/[^/]+)?")


class Rpc:
    """The server, from ``start`` to ``close``."""

    def __init__(self, jobs: JobService, log: EntryLog, faults: Faults) -> None:
        self._jobs, self._log, self._faults = jobs, log, faults
        self._closing = threading.Event()
        self._server: Any = None

    def start(self, folder: Path) -> str:
        """Its address. ``folder`` gets ``roots.pem``, the certificate to trust."""
        grpc, authority = import_module("grpc"), _authority()
        certificate = authority.issue_cert(_HOST, "127.0.0.1")
        authority.cert_pem.write_to_path(str(folder / "roots.pem"))
        chain = b"".join(part.bytes() for part in certificate.cert_chain_pems)
        credentials = grpc.ssl_server_credentials([(certificate.private_key_pem.bytes(), chain)])
        self._server = grpc.server(ThreadPoolExecutor(_THREADS, "vertex grpc"))
        calls = {
            "google.cloud.aiplatform.v1.JobService": {
                "CreateCustomJob": self._create,
                "GetCustomJob": self._get,
                "ListCustomJobs": self._list,
                "CancelCustomJob": self._cancel,
                "DeleteCustomJob": self._delete,
            },
            "google.logging.v2.LoggingServiceV2": {"ListLogEntries": self._list_entries},
        }
        for service, methods in calls.items():
            handlers = {
                name: grpc.unary_unary_rpc_method_handler(self._guarded(name, call)) for name, call in methods.items()
            }
            self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
        port = self._server.add_secure_port("127.0.0.1:0", credentials)
        self._server.start()
        return f"{_HOST}:{port}"

    def close(self) -> None:
        """Take no more calls, and end those that there are."""
        self._closing.set()
        if self._server:
            self._server.stop(0).wait()

    def _guarded(self, name: str, call: Callable[[bytes], bytes]) -> Callable[[bytes, Any], bytes]:
        """With call faults in front of it, as ``web.py`` has them, and refusals in gRPC's form."""

        def answer(data: bytes, context: Any) -> bytes:
            status = import_module("grpc").StatusCode
            fault = self._faults.call("vertex", name)
            if fault and fault.status:
                context.abort(status[code_of(fault.status)], "a fault of the emulator's fault file")
            if fault and fault.kind == "slow":
                self._closing.wait(fault.seconds)
            try:
                found = call(data)
            except ServiceError as error:
                context.abort(status[error.code], error.message)
            if fault and fault.kind in ("lost", "cut"):
                context.abort(status.UNAVAILABLE, "Socket closed")
            return found

        return answer

    def _create(self, data: bytes) -> bytes:
        request = _types("job_service").CreateCustomJobRequest.pb().FromString(data)
        return _sent(self._jobs.create(_place(request.parent), as_json(request.custom_job)))

    def _get(self, data: bytes) -> bytes:
        request = _types("job_service").GetCustomJobRequest.pb().FromString(data)
        return _sent(self._jobs.get(request.name))

    def _list(self, data: bytes) -> bytes:
        types = _types("job_service")
        request = types.ListCustomJobsRequest.pb().FromString(data)
        page = self._jobs.list(_place(request.parent), request.filter, request.page_size, request.page_token)
        jobs = [as_message(job) for job in page.jobs]
        return _bytes(types.ListCustomJobsResponse.pb()(custom_jobs=jobs, next_page_token=page.next_token))

    def _cancel(self, data: bytes) -> bytes:
        self._jobs.cancel(_types("job_service").CancelCustomJobRequest.pb().FromString(data).name)
        return b""

    def _delete(self, data: bytes) -> bytes:
        operation = self._jobs.delete(_types("job_service").DeleteCustomJobRequest.pb().FromString(data).name)
        message = import_module("google.longrunning.operations_pb2").Operation(name=operation["name"], done=True)
        message.metadata.Pack(_types("operation").DeleteOperationMetadata.pb()())
        message.response.Pack(import_module("google.protobuf.empty_pb2").Empty())
        return _bytes(message)

    def _list_entries(self, data: bytes) -> bytes:
        from google.protobuf import json_format

        types = import_module("google.cloud.logging_v2.types")
        request = types.ListLogEntriesRequest.pb().FromString(data)
        projects = [name.partition("/")[2].partition("/")[0] for name in request.resource_names]
        page = self._log.list(projects, request.filter, request.order_by, request.page_size, request.page_token)
        kind = types.LogEntry.pb()
        entries = [json_format.ParseDict(entry, kind()) for entry in page.entries]
        return _bytes(types.ListLogEntriesResponse.pb()(entries=entries, next_page_token=page.next_token))


@functools.cache
def _authority() -> Any:
    """One for all emulators of a process, such as those of its tests: gRPC reads whom to trust once."""
    return import_module("trustme").CA()


def _types(module: str) -> Any:
    return import_module(f"google.cloud.aiplatform_v1.types.{module}")


def _place(parent: str) -> Place:
    found = _NAME.fullmatch(parent)
    if found is None:
        raise ServiceError("INVALID_ARGUMENT", f"Invalid resource field value in the request: {parent}")
    return Place(*found.groups())


def _sent(job: Mapping[str, Any]) -> bytes:
    return _bytes(as_message(job))


def _bytes(message: Any) -> bytes:
    found: bytes = message.SerializeToString()
    return found
