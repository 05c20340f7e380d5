"""Files to Cloud Storage: several at once, large ones in parts, each whole or not there at all.

Everything that is named by the digest of its content is written only where nothing of that name is. So two uploads at
once end with the bytes of one of them, and nobody replaces what a node is just reading.
"""

from __future__ import annotations

import io
import random
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any

from cloudtrain.errors import CloudtrainError, UnreachableError
from cloudtrain.providers.uploading import Outgoing
from cloudtrain.providers.vertex.calls import is_temporary
from cloudtrain.providers.vertex.parts import Part, Parts
from cloudtrain.providers.vertex.store import TIMEOUT, Store, patience

_THREADS = 8
_CHUNK = 8 << 20
"""Of a resumable upload: after a lost connection it goes on behind the last of these."""
_TRIES = 4
_TELL_SECONDS = 0.1


class Sender:
    """Sends files. ``tell`` is called with the bytes that have gone so far, from the thread that calls ``send``."""

    def __init__(self, store: Store, parts: Parts, tell: Callable[[int], None]) -> None:
        self._store = store
        self._parts = parts
        self._tell = tell
        self._pool = ThreadPoolExecutor(_THREADS, "cloudtrain-upload")
        self._streams: list[_Piece] = []
        self.present = 0
        """Bytes that were there already."""

    def send(self, files: Sequence[Outgoing]) -> None:
        """All of them."""
        large = [one for one in files if self._parts.are_needed(one)]
        whole = [(Part(one.file, one.uri, 0, one.size), one.once) for one in files if one not in large]
        self._finish([self._pool.submit(self._put, part, once) for part, once in whole])
        for one in large:
            self._send_in_parts(one)

    def tidy(self, folders: Collection[str]) -> None:
        """Remove what earlier uploads have left of ``folders``, in which all is there now, and what was given up."""
        with suppress(CloudtrainError):  # all has been sent
            self._parts.remove_left(folders, self._pool)

    def close(self) -> None:
        """Wait for what is being sent; nothing more is begun."""
        self._pool.shutdown(cancel_futures=True)

    @property
    def read(self) -> int:
        """Bytes that have been handed to the network."""
        return sum(stream.most for stream in self._streams)

    def _finish(self, futures: list[Future[int]]) -> None:
        left = set(futures)
        while left:
            done, left = wait(left, _TELL_SECONDS)
            self.present += sum(future.result() for future in done)
            self._tell(self.read + self.present)

    def _put(self, part: Part, once: bool) -> int:
        """The bytes of it that were there already: all or none."""
        from google.api_core.exceptions import PreconditionFailed

        blob = self._store.blob(part.uri)
        if part.size > _CHUNK:
            blob.chunk_size = _CHUNK
        with part.file.open("rb") as file, self._store.told(blob.bucket.name):
            stream = _Piece(file, part.start, part.size)
            self._streams.append(stream)
            try:
                blob.upload_from_file(
                    stream,
                    size=part.size,
                    content_type="application/octet-stream",
                    if_generation_match=0 if once else None,
                    checksum="crc32c",
                    timeout=TIMEOUT,
                    retry=patience(),
                )
            except PreconditionFailed:  # somebody else was faster, or an answer to us was lost
                self._streams.remove(stream)
                return part.size
        return 0

    def _send_in_parts(self, one: Outgoing) -> None:
        parts, there = self._parts.of(one), self._parts.lying(one)
        missing = [part for part in parts if part.uri not in there]
        self.present += sum(part.size for part in parts if part.uri in there)
        for _ in range(_TRIES):
            self._finish([self._pool.submit(self._put, part, True) for part in missing])
            if self._joined(one, parts):
                self._parts.remove([part.uri for part in parts], self._pool)
                return
            time.sleep(random.uniform(0.2, 1.0))  # another upload of the same is at work
            missing = [part for part in parts if not self._is_there(part.uri)]
        raise UnreachableError(f"{one.uri} cannot be put together from its parts: they keep going away")

    def _joined(self, one: Outgoing, parts: list[Part]) -> bool:
        """Whether the object is there. False if a part is gone: another upload has used and removed it."""
        from google.api_core.exceptions import GoogleAPICallError, PreconditionFailed

        blob = self._store.blob(one.uri)
        with self._store.told(blob.bucket.name):
            try:
                blob.compose(
                    [self._store.blob(part.uri) for part in parts],
                    if_generation_match=0,
                    timeout=TIMEOUT,
                    retry=None,
                )
            except PreconditionFailed:
                return True
            except GoogleAPICallError as error:
                if error.code != 404 and not is_temporary(error):
                    raise
                return self._is_there(one.uri)
        return True

    def _is_there(self, uri: str) -> bool:
        blob = self._store.blob(uri)
        with self._store.told(blob.bucket.name):
            return bool(blob.exists(timeout=TIMEOUT, retry=patience()))


class _Piece(io.RawIOBase):
    """A part of a file as a file, which knows how much of it has been read at most."""

    def __init__(self, file: io.BufferedReader, start: int, size: int) -> None:
        super().__init__()
        self._file, self._start, self._size = file, start, size
        self._at = self.most = 0
        file.seek(start)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), self._size - self._at)
        data = self._file.read(wanted)
        buffer[: len(data)] = data
        self._at += len(data)
        self.most = max(self.most, self._at)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        self._file.seek(self._start + self._at)
        return self._at

    def tell(self) -> int:
        return self._at
