"""Serves one control plane on loopback, plain or behind TLS, with call faults in front of it.

HTTP/1.1 with connections that stay open, as the clouds' own ends keep them: werkzeug's server closes every one, and
those that do not (gunicorn, uvicorn) want a process or a main thread of their own. A thread for each connection, the
handshake included, so that nobody waits for a client that says nothing. Bodies are held in memory.
"""

from __future__ import annotations

import contextlib
import io
import socket
import socketserver
import ssl
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from cloudtrain.emulator.base import Surface
from cloudtrain.emulator.faults import CallFault, Faults

if TYPE_CHECKING:
    from _typeshed.wsgi import InputStream

_HOST = "127.0.0.1"
_HANDSHAKE_SECONDS = 10.0
_CLOSE_SECONDS = 5.0
_WORDS = {
    "throttle": "Rate exceeded (a fault of the emulator's fault file)",
    "expired-token": "The security token included in the request is expired (a fault of the emulator's fault file)",
    "error": "Something went wrong inside the service (a fault of the emulator's fault file)",
}


class Server:
    """A control plane that answers at ``url`` until ``close``."""

    def __init__(
        self,
        plane: Surface,
        faults: Faults,
        provider: str,
        *,
        tls: ssl.SSLContext | None = None,
        on_call: Callable[[], object] = lambda: None,
    ) -> None:
        """``tls`` is what the server's certificate was loaded into; ``on_call`` is told of every call."""
        self._sockets = _Sockets((_HOST, 0), tls)
        self._sockets.answer = _Front(plane, faults, provider, self._sockets.ended, on_call).answer
        self._thread = threading.Thread(target=self._sockets.serve_forever, args=(0.05,), name=f"{provider} emulator")
        self._thread.start()
        self.port: int = self._sockets.server_address[1]
        self.url = f"{'https' if tls else 'http'}://{_HOST}:{self.port}"

    def close(self) -> None:
        """Take no more calls, end the connections, and wait for the threads that serve them."""
        self._sockets.ended.set()
        self._sockets.shutdown()
        self._thread.join()
        self._sockets.server_close()
        self._sockets.end_connections()


class _Answer(NamedTuple):
    """What goes back."""

    status: str
    headers: list[tuple[str, str]]
    body: bytes
    cut: bool = False
    """Half of the body, then the end of the connection."""


class _Front:
    """Asks the plane, or what the fault file has in its place."""

    def __init__(
        self, plane: Surface, faults: Faults, provider: str, ended: threading.Event, on_call: Callable[[], object]
    ) -> None:
        self._plane = plane
        self._faults = faults
        self._provider = provider
        self._ended = ended
        self._on_call = on_call

    def answer(self, environ: dict[str, Any]) -> _Answer | None:
        """None: the connection is to end without one."""
        try:
            self._on_call()
            fault = self._faults.call(self._provider, self._plane.operation(environ))
            environ["wsgi.input"].seek(0)
            if fault and fault.kind in _WORDS:
                return self._error(fault.status, fault.kind, _WORDS[fault.kind])
            if fault and fault.kind == "slow":
                self._ended.wait(fault.seconds)
            return _after(fault, _asked(self._plane.app, environ))
        except Exception as error:  # noqa: BLE001 - a fault of ours: told to whoever asked, and on the terminal
            traceback.print_exc(file=sys.stderr)
            return self._error(500, "fault", f"a fault of the emulator: {error!r}")

    def _error(self, status: int, code: str, message: str) -> _Answer:
        body, headers = self._plane.fault_response(status, code, message)
        return _Answer(_status_line(status), list(headers.items()), body)


def _after(fault: CallFault | None, answer: _Answer) -> _Answer | None:
    """What is left of an answer."""
    if fault and fault.kind == "lost":
        return None
    return answer._replace(cut=True) if fault and fault.kind == "cut" else answer


def _asked(app: Callable[..., Any], environ: dict[str, Any]) -> _Answer:
    begun: list[tuple[str, list[tuple[str, str]]]] = []
    written: list[bytes] = []

    def start_response(status: str, headers: list[tuple[str, str]], _: object = None) -> Callable[[bytes], object]:
        begun.append((status, headers))
        return written.append

    parts = app(environ, start_response)
    try:
        written.extend(parts)
    finally:
        if hasattr(parts, "close"):
            parts.close()
    return _Answer(*begun[-1], b"".join(written))


def _status_line(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} Unknown"


class _Sockets(socketserver.TCPServer):
    """Connections, each with its thread; all can be ended."""

    request_queue_size = 128
    answer: Callable[[dict[str, Any]], _Answer | None]

    def __init__(self, address: tuple[str, int], tls: ssl.SSLContext | None) -> None:
        super().__init__(address, _Connection)
        self.tls = tls
        self.ended = threading.Event()
        self._open: dict[threading.Thread, socket.socket] = {}
        self._lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        if self.tls:
            request = self.tls.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=self._serve, args=(request, client_address), daemon=True)
        with self._lock:
            self._open[thread] = request
        thread.start()

    def _serve(self, request: Any, client_address: Any) -> None:
        try:
            if self.tls:
                request.settimeout(_HANDSHAKE_SECONDS)
                request.do_handshake()
                request.settimeout(None)
            self.finish_request(request, client_address)
        except OSError:  # ssl.SSLError is one, too: clients may go whenever they like
            pass
        except Exception:  # noqa: BLE001 - as http.server would have it
            traceback.print_exc(file=sys.stderr)
        finally:
            self.shutdown_request(request)
            with self._lock:
                del self._open[threading.current_thread()]

    def end_connections(self) -> None:
        with self._lock:
            still = dict(self._open)
        for connection in still.values():
            with contextlib.suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)  # not SSLSocket's, which its thread may be using
        for thread in still:
            thread.join(_CLOSE_SECONDS)


class _Connection(BaseHTTPRequestHandler):
    """One client, for as many calls as it makes."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Sockets

    def _call(self) -> None:
        body = self._body()
        if body is None:
            self.send_error(400, "the request's body has no length")
            return
        answer = self.server.answer(self._environ(body))
        if answer is None:
            self.close_connection = True
            return
        self._send(answer)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _call

    def _body(self) -> bytes | None:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return b"".join(iter(self._chunk, b""))
        length = self.headers.get("Content-Length", "0")
        return self.rfile.read(int(length)) if length.isdecimal() else None

    def _chunk(self) -> bytes:
        """The next one; b"" at the end."""
        length = int(self.rfile.readline().partition(b";")[0].strip() or b"0", 16)
        data = self.rfile.read(length)
        while self.rfile.readline().strip() and not length:  # the end of the line, or of what follows the last one
            pass
        return data

    def _environ(self, body: bytes) -> dict[str, Any]:
        """By PEP 3333, and the undecoded address under the names that gunicorn and werkzeug have for it."""
        url = urlsplit(self.path)
        stream: InputStream = io.BytesIO(body)
        headers: dict[str, str] = {}
        for name, value in self.headers.items():
            key = "HTTP_" + name.upper().replace("-", "_")
            headers[key] = f"{headers[key]},{value}" if key in headers else value
        host, port = self.server.server_address[:2]
        return {
            **headers,
            "REQUEST_METHOD": self.command,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote(url.path, "latin-1"),
            "QUERY_STRING": url.query,
            "REQUEST_URI": self.path,
            "RAW_URI": self.path,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "SERVER_NAME": str(host),
            "SERVER_PORT": str(port),
            "SERVER_PROTOCOL": self.request_version,
            "REMOTE_ADDR": self.client_address[0],
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "https" if self.server.tls else "http",
            "wsgi.input": stream,
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }

    def _send(self, answer: _Answer) -> None:
        """In one piece, so that no client waits for the second."""
        given: Mapping[str, str] = {name.lower(): value for name, value in answer.headers}
        has_none = self.command == "HEAD" or answer.status[:3] in ("204", "304") or answer.status[0] == "1"
        length = given.get("content-length", "") if has_none else str(len(answer.body))
        lines = [f"HTTP/1.1 {answer.status}"]
        lines += [f"{name}: {value}" for name, value in answer.headers if name.lower() not in _OURS]
        lines += [f"Content-Length: {length}"] if length else []
        lines += ["Date: " + self.date_time_string()] if "date" not in given else []
        lines += ["Connection: close"] if self.close_connection or answer.cut else []
        body = b"" if has_none else answer.body
        if answer.cut:
            body = body[: len(body) // 2]
            self.close_connection = True
        self.wfile.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)

    def log_message(self, *_: Any) -> None:
        """Nothing: whoever wants to know what was asked looks at ``Plane.requests``."""


_OURS = ("content-length", "transfer-encoding", "connection")
