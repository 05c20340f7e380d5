"""Planes on loopback, asked by real HTTP clients: connections that stay open, TLS, and faults in front of the plane."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests

from cloudtrain.emulator import certificates
from cloudtrain.emulator.faults import Faults
from cloudtrain.emulator.web import Server

TEXT = "0123456789" * 100


class Echo:
    """A plane that answers with what it was asked, and counts."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.hold = threading.Event()

    def app(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        body = environ["wsgi.input"].read()
        kept = {name: value for name, value in environ.items() if isinstance(value, str)}
        self.asked.append({**kept, "body": body.decode("latin-1")})
        if environ["PATH_INFO"] == "/raises":
            raise RuntimeError("a bug")
        if environ["PATH_INFO"] == "/hangs":
            self.hold.wait(30)
        if environ["PATH_INFO"] == "/empty":
            start_response("204 No Content", [])
            return []
        start_response("200 OK", [("Content-Type", "text/plain"), ("X-Twice", "a"), ("X-Twice", "b")])
        return [TEXT.encode()[:400], TEXT.encode()[400:]]

    def operation(self, environ: Mapping[str, Any]) -> str:
        environ["wsgi.input"].read()  # some services name the operation in the body
        return str(environ.get("HTTP_X_OPERATION", "Echo"))

    def fault_response(self, status: int, code: str, message: str) -> tuple[bytes, Mapping[str, str]]:
        return json.dumps([status, code, message]).encode(), {"Content-Type": "application/json", "Retry-After": "1"}


Serve = Callable[..., tuple[Echo, Server]]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """``serve("calls: ...")``: the plane, and where it answers."""
    servers: list[Server] = []
    before = threading.active_count()

    def serve(faults: str = "", tls: ssl.SSLContext | None = None) -> tuple[Echo, Server]:
        file = tmp_path / "faults.yaml"
        file.write_text(faults)
        plane = Echo()
        servers.append(Server(plane, Faults.load(file), "vertex", tls=tls))
        return plane, servers[-1]

    yield serve
    for server in servers:
        server.close()
    assert threading.active_count() == before


@pytest.fixture
def client() -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.trust_env = False
        yield session


def test_what_the_plane_is_given(serve: Serve, client: requests.Session) -> None:
    plane, server = serve()
    answer = client.post(f"{server.url}/a%20b/%C3%A4?q=1&q=2", data=b"x\x00y", headers={"X-Operation": "Op"})
    assert (answer.status_code, answer.text, answer.headers["X-Twice"]) == (200, TEXT, "a, b")
    asked = plane.asked[0]
    assert asked["body"] == "x\x00y"
    assert {name: asked[name] for name in ("REQUEST_METHOD", "QUERY_STRING", "RAW_URI", "CONTENT_LENGTH")} == {
        "REQUEST_METHOD": "POST", "QUERY_STRING": "q=1&q=2", "RAW_URI": "/a%20b/%C3%A4?q=1&q=2", "CONTENT_LENGTH": "3"
    }  # fmt: skip
    assert asked["PATH_INFO"].encode("latin-1").decode() == "/a b/ä"
    assert asked["HTTP_HOST"] == f"127.0.0.1:{server.port}"


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_a_connection_serves_many_calls(serve: Serve, method: str) -> None:
    plane, server = serve()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.connect()
    local = connection.sock.getsockname()
    for path in ("/one", "/empty", "/two"):
        connection.request(method, path, body=b"some" if method in ("POST", "PUT", "PATCH") else None)
        answer = connection.getresponse()
        assert answer.read() == (b"" if method == "HEAD" or path == "/empty" else TEXT.encode())
        assert connection.sock is not None, "it was closed"
        assert connection.sock.getsockname() == local
    connection.close()
    assert len(plane.asked) == 3


def test_a_body_in_pieces(serve: Serve, client: requests.Session) -> None:
    plane, server = serve()
    client.put(server.url, data=iter([b"one ", b"two ", b"x" * 100_000]))
    client.put(server.url, data=b"next")
    assert [asked["body"] for asked in plane.asked] == ["one two " + "x" * 100_000, "next"]


def test_a_client_that_waits_for_the_word_to_go_on(serve: Serve) -> None:
    """As boto3 does before it sends an object."""
    plane, server = serve()
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as sock:
        sock.sendall(b"PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 100 ")
        sock.sendall(b"body")
        assert sock.recv(100).startswith(b"HTTP/1.1 200 ")
    assert plane.asked[0]["body"] == "body"


@pytest.mark.parametrize(
    "request_", [b"no http\r\n\r\n", b"PUT / HTTP/1.1\r\nContent-Length: -4\r\n\r\n", b"\x16\x03\x01"]
)
def test_nonsense_harms_nobody(serve: Serve, client: requests.Session, request_: bytes) -> None:
    _, server = serve()
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as sock:
        sock.sendall(request_)
    assert client.get(server.url).status_code == 200


@pytest.mark.parametrize(
    ("entry", "status", "code"),
    [
        ("fault: throttle", 429, "throttle"),
        ("fault: error, status: 503", 503, "error"),
        ("fault: error, status: 599", 599, "error"),
        ("fault: expired-token", 401, "expired-token"),
    ],
)
def test_a_fault_is_worded_by_the_plane_which_is_not_asked(
    serve: Serve, client: requests.Session, entry: str, status: int, code: str
) -> None:
    plane, server = serve(f"calls: [{{{entry}, operation: 'Create*', times: 2}}]")
    assert client.post(server.url, headers={"X-Operation": "Get"}).status_code == 200
    for _ in range(2):
        answer = client.post(server.url, data=b"body", headers={"X-Operation": "CreateJob"})
        assert (answer.status_code, answer.json()[:2], answer.headers["Retry-After"]) == (status, [status, code], "1")
    assert client.post(server.url, data=b"again", headers={"X-Operation": "CreateJob"}).status_code == 200
    assert [asked["body"] for asked in plane.asked] == ["", "again"]


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("fault", ["lost", "cut"])
def test_an_answer_that_does_not_come_through(
    serve: Serve, client: requests.Session, tmp_path: Path, fault: str, tls: bool
) -> None:
    """The call has taken effect all the same."""
    context, variables = certificates.issue(tmp_path / "ca.pem") if tls else (None, {})
    plane, server = serve(f"calls: [{{fault: {fault}}}]", context)
    client.verify = variables.get("REQUESTS_CA_BUNDLE", True)
    with pytest.raises((requests.ConnectionError, requests.exceptions.ChunkedEncodingError)) as caught:
        client.post(server.url, data=b"x")
    assert ("IncompleteRead(500 bytes read, 500 more expected)" in str(caught.value)) == (fault == "cut")
    assert [asked["body"] for asked in plane.asked] == ["x"]
    assert client.post(server.url, data=b"y").text == TEXT


def test_a_slow_answer_holds_up_nobody_else(serve: Serve, client: requests.Session) -> None:
    _, server = serve("calls: [{operation: 'Slow*', fault: slow, seconds: 300}]")
    ended: list[str] = []

    def ask() -> None:
        try:
            ended.append(requests.get(server.url, headers={"X-Operation": "Slow"}, timeout=60).text)
        except requests.RequestException as error:
            ended.append(repr(error))

    thread = threading.Thread(target=ask)
    thread.start()
    assert client.get(server.url).text == TEXT
    assert thread.is_alive()
    server.close()  # nor the end
    thread.join(30)
    assert not thread.is_alive()


def test_a_fault_of_the_plane_is_told_and_not_silent(
    serve: Serve, client: requests.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    _, server = serve()
    answer = client.get(f"{server.url}/raises")
    assert (answer.status_code, answer.json()[1]) == (500, "fault")
    assert "RuntimeError: a bug" in capsys.readouterr().err
    assert client.get(server.url).status_code == 200


def test_behind_tls_only_who_trusts_it_gets_through(
    serve: Serve, client: requests.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, variables = certificates.issue(tmp_path / "trusted.pem")
    plane, server = serve(tls=context)
    assert server.url.startswith("https://127.0.0.1:")
    with socket.create_connection(("127.0.0.1", server.port)):  # who never begins a handshake keeps nobody waiting
        with pytest.raises(requests.exceptions.SSLError):
            client.get(server.url)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert requests.get(server.url, timeout=30).text == TEXT  # by the variable alone
        by_openssl = ssl.create_default_context()
        connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=by_openssl, timeout=30)
        connection.request("GET", "/")
        assert connection.getresponse().read() == TEXT.encode()
        connection.close()
    assert len(plane.asked) == 2


def test_the_file_of_certificates_holds_what_was_trusted_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.pem").write_text("-----BEGIN CERTIFICATE-----\nof the user's company\n")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "own.pem"))
    for name in ("SSL_CERT_FILE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    certificates.issue(tmp_path / "trusted.pem")
    assert "of the user's company" in (tmp_path / "trusted.pem").read_text()


def test_the_end_waits_for_nobody_who_says_nothing(serve: Serve) -> None:
    plane, server = serve()
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(5)]
    busy = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    busy.request("GET", "/hangs")
    deadline = time.monotonic() + 30
    while not plane.asked:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    ender = threading.Thread(target=server.close)
    ender.start()
    plane.hold.set()
    ender.join(30)
    assert not ender.is_alive()
    busy.close()
    for connection in idle:
        connection.close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", server.port), timeout=30)
