"""A real HTTP server on loopback that gives prepared answers and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """A dict becomes JSON."""

    content: dict[str, Any] | bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def body(self) -> bytes:
        return self.content if isinstance(self.content, bytes) else json.dumps(self.content).encode()


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Server:
    """``answers``: beginning of a path -> what it gets, one after the other, the last one again and again."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.answers: dict[str, list[Answer]] = {}
        self.asked: list[Asked] = []
        self.open = threading.Event()
        """Cleared, every answer is held back."""
        self.open.set()
        self.lock = threading.Lock()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    def answer(self, path: str, *answers: Answer) -> None:
        self.answers[path] = list(answers)

    def asked_for(self, path: str) -> list[Asked]:
        with self.lock:
            return [asked for asked in self.asked if asked.path.startswith(path)]

    def next_answer(self, asked: Asked) -> Answer:
        with self.lock:
            self.asked.append(asked)
            for path in sorted(self.answers, key=len, reverse=True):
                if asked.path.startswith(path):
                    found = self.answers[path]
                    return found.pop(0) if len(found) > 1 else found[0]
        return Answer({"error": {"message": f"nothing at {asked.path}"}}, 404)


@contextmanager
def serving() -> Iterator[Server]:
    """The server, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Expect"):
                body = b""
            asked = Asked(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            answer = server.next_answer(asked)
            server.open.wait()
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_PUT = do_POST = do_HEAD = _answer

        def log_message(self, *_: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    server = Server(listening.server_address[1])
    thread = threading.Thread(target=listening.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.open.set()
        listening.shutdown()
        thread.join()
        listening.server_close()
