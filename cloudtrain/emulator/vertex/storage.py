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
from pathlib import Path
from typing import IO
from urllib.parse import quote

from cloudtrain.emulator.servers import Server, fake_gcs_server
from cloudtrain.emulator.vertex.mirror import Mirror


class Storage:
    """The server, from ``start`` to ``close``, and the nodes' view of its buckets."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is made, and is left to whoever owns it."""
        self._folder = folder
        self._objects, self._mounted = folder / "objects", folder / "mounted"
        for place in (self._objects, self._mounted):
            place.mkdir(parents=True)
        self._server: Server | None = None
        self.url = ""
        self._mirror = Mirror(self._objects, self._mounted, folder / "passing", self._upload, self._delete)

    def start(self) -> None:
        """Raises MissingError without the package that brings the server."""
        self._server = fake_gcs_server(self._objects, self._folder / "server.log")
        self._server.wait()
        self.url = self._server.url

    def create_bucket(self, name: str) -> None:
        """A bucket is a folder to the server."""
        (self._objects / name).mkdir(exist_ok=True)

    def buckets(self) -> list[Path]:
        """The folders that are the buckets under /gcs."""
        for bucket in self._objects.iterdir():
            if bucket.is_dir():
                (self._mounted / bucket.name).mkdir(exist_ok=True)
        return sorted(self._mounted.iterdir())

    def sync(self, *, all_of_it: bool = False) -> None:
        """Make both sides alike. Files that were written a moment ago are left for later, as the real mount shows a
        file once it was closed, unless ``all_of_it``."""
        self.buckets()
        self._mirror.sync(all_of_it=all_of_it)

    def close(self) -> None:
        """End the server."""
        if self._server:
            self._server.close()

    def _upload(self, bucket: str, name: str, file: Path) -> None:
        path = f"/upload/storage/v1/b/{quote(bucket, safe='')}/o?uploadType=media&name={quote(name, safe='')}"
        with file.open("rb") as content:
            self._call("POST", path, content)

    def _delete(self, bucket: str, name: str) -> None:
        self._call("DELETE", f"/storage/v1/b/{quote(bucket, safe='')}/o/{quote(name, safe='')}")

    def _call(self, method: str, path: str, body: IO[bytes] | None = None) -> None:
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=60)
        try:
            connection.request(method, path, body, {"Content-Type": "application/octet-stream"} if body else {})
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):  # the server is being ended
            pass
        finally:
            connection.close()
