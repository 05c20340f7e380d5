"""AWS on loopback: moto's S3 and CloudWatch Logs, SageMaker's jobs by ``jobs.py``, and what goes wrong between.

moto keeps neither a job's variables nor its states, and knows no name that is taken; see ``jobs.py``.
"""

from __future__ import annotations

import io
import json
import random
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from tests.clients.sagemaker.jobs import Jobs

Start = Callable[..., Any]


class Trouble(NamedTuple):
    """What is to happen to the next calls of an operation."""

    operation: str
    times: int = 1
    code: str = ""
    """Of the error that is answered; "" for none."""
    status: int = 400
    message: str = "as the test wants it"
    done: bool = False
    """Without a code: the connection ends, before the call is done or after."""
    half: bool = False
    """The answer ends in its middle, and the connection with it."""


class Call(NamedTuple):
    """A call that came in."""

    operation: str
    path: str
    sent: int
    """Bytes of its body."""
    condition: str
    """Its If-None-Match."""
    agent: str
    body: bytes


class Aws:
    """A WSGI application."""

    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

        self._moto = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()
        self.jobs = Jobs()
        self.calls: list[Call] = []
        self.troubles: list[Trouble] = []
        self.empty_pages = 0
        """So many before every page of log events that holds some."""
        self.shuffled = False
        """Whether the events of a page come in any order."""
        self.odd: list[Any] = []
        """Events before those of a page."""
        self.after: tuple[str, int] | None = None
        """An operation, and how often it is done before nothing answers any more."""
        self.page: bytes | None = None
        """What is answered to everything."""

    def begin(self) -> None:
        """As if nothing had ever been asked."""
        from moto.backends import get_backend
        from moto.core.model_instances import reset_model_data

        for name in ("s3", "logs"):
            get_backend(name).reset()
        reset_model_data()
        self.jobs = Jobs()
        self.calls = []
        self.troubles = []
        self.empty_pages = 0
        self.shuffled = False
        self.odd = []
        self.after = None
        self.page = None

    def operations(self, *names: str) -> list[str]:
        """The operations that were called, of these names if any are given."""
        return [call.operation for call in self.calls if not names or call.operation in names]

    def __call__(self, environ: dict[str, Any], start_response: Start) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        operation = _operation(environ)
        with self._lock:
            self.calls.append(_call(operation, environ, body))
            trouble = self._next(operation)
        if self.page is not None:
            start_response("200 OK", [("Content-Type", "text/html")])
            return [self.page]
        if trouble and trouble.half:
            return _half(self._answer(operation, environ, body, lambda *_: None), start_response)
        if trouble and trouble.code:
            return _error(trouble, "x-amz-json" in environ.get("CONTENT_TYPE", ""), start_response)
        if trouble and not trouble.done:
            return _cut(environ)
        answer = self._answer(operation, environ, body, start_response)
        return _cut(environ) if trouble else answer

    def _answer(self, operation: str, environ: dict[str, Any], body: bytes, start_response: Start) -> Iterable[bytes]:
        if environ.get("HTTP_X_AMZ_TARGET", "").startswith("SageMaker."):
            return self._job(operation, body, start_response)
        if operation == "GetLogEvents" and (self.empty_pages or self.shuffled or self.odd):
            return self._events(environ, start_response, json.loads(body))
        return self._moto(environ, start_response)

    def _next(self, operation: str) -> Trouble | None:
        if self.after and len(self.operations(self.after[0])) > self.after[1]:
            return Trouble("*")
        for number, trouble in enumerate(self.troubles):
            if trouble.operation in (operation, "*"):
                self.troubles[number : number + 1] = [trouble._replace(times=trouble.times - 1)] * (trouble.times > 1)
                return trouble
        return None

    def _events(self, environ: dict[str, Any], start_response: Start, asked: dict[str, Any]) -> Iterable[bytes]:
        """Pages as moto does not make them. The token of an empty one is its number, and moto's own token."""
        token = str(asked.pop("nextToken", ""))
        number, _, moto = token.rpartition("|")
        if int(number or 0) < self.empty_pages:
            answer = {"events": [], "nextForwardToken": f"{int(number or 0) + 1}|{moto}", "nextBackwardToken": "b/0"}
        else:
            body = json.dumps({**asked, **({"nextToken": moto} if moto else {})}).encode()
            environ = {**environ, "wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
            answer = json.loads(b"".join(self._moto(environ, lambda *_: None)))
            if answer["nextForwardToken"] == moto:  # the end
                answer["nextForwardToken"] = token
        answer["events"][:0] = self.odd
        if self.shuffled:
            random.Random(1).shuffle(answer["events"])
        start_response("200 OK", [("Content-Type", "application/x-amz-json-1.1")])
        return [json.dumps(answer).encode()]

    def _job(self, operation: str, body: bytes, start_response: Start) -> Iterable[bytes]:
        with self._lock:
            status, answer = self.jobs.answer(operation, json.loads(body))
        start_response(f"{status} -", [("Content-Type", "application/x-amz-json-1.1")])
        return [json.dumps(answer).encode()]


@contextmanager
def served(app: Aws) -> Iterator[str]:
    """The URL at which ``app`` answers."""
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"  # connections stay open, as AWS's do

        def log(self, *_: Any) -> None:
            pass

    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _call(operation: str, environ: dict[str, Any], body: bytes) -> Call:
    condition, agent = environ.get("HTTP_IF_NONE_MATCH", ""), environ.get("HTTP_USER_AGENT", "")
    return Call(operation, environ["PATH_INFO"], len(body), condition, agent, body)


def _operation(environ: dict[str, Any]) -> str:
    """As AWS's reference calls it."""
    if target := environ.get("HTTP_X_AMZ_TARGET"):
        return str(target).rpartition(".")[2]
    query = parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
    method, of_object = environ["REQUEST_METHOD"], "/" in environ["PATH_INFO"].strip("/")
    if "uploads" in query:
        return "CreateMultipartUpload" if method == "POST" else "ListMultipartUploads"
    if "uploadId" in query:
        return {"PUT": "UploadPart", "POST": "CompleteMultipartUpload", "GET": "ListParts"}.get(method, "Abort")
    if method == "GET" and not of_object:
        return "ListObjectsV2"
    return f"{method.capitalize()}Object" if of_object else f"{method.capitalize()}Bucket"


def _error(trouble: Trouble, as_json: bool, start_response: Start) -> Iterable[bytes]:
    status, message = f"{trouble.status} -", trouble.message
    if as_json:
        start_response(status, [("Content-Type", "application/x-amz-json-1.1")])
        return [json.dumps({"__type": trouble.code, "message": message}).encode()]
    start_response(status, [("Content-Type", "application/xml")])
    return [f"<Error><Code>{trouble.code}</Code><Message>{message}</Message></Error>".encode()]


def _half(answer: Iterable[bytes], start_response: Start) -> Iterable[bytes]:
    """The length is that of the whole."""
    whole = b"".join(answer)
    start_response("200 OK", [("Content-Length", str(len(whole))), ("Connection", "close")])
    return [whole[: len(whole) // 2]]


def _cut(environ: dict[str, Any]) -> Iterable[bytes]:
    """End the connection without an answer."""
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    raise ConnectionError("cut")
