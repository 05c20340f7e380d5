"""Files to S3: several at once, large ones in parts, each whole or not there at all.

An object whose name holds the digest of its content is written only if nobody has written it before. So two uploads at
once end with the bytes of one of them, and nobody replaces what a node is just reading.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from cloudtrain.errors import UnreachableError
from cloudtrain.providers.sagemaker.errors import NoSense, asking
from cloudtrain.providers.sagemaker.multipart import PART_BYTES, Upload, piece
from cloudtrain.providers.sagemaker.refusals import AlreadyThere, CutIn
from cloudtrain.providers.sagemaker.s3 import exists, split
from cloudtrain.providers.uploading import Outgoing

_THREADS = 8
_TRIES = 5


class Sender:
    """Sends files, and counts; ``tell`` is called with the bytes that have come to be there, from one thread."""

    def __init__(self, s3: Any, region: str, tell: Callable[[int], None]) -> None:
        self._s3 = s3
        self._region = region
        self._tell = tell
        self._pool = ThreadPoolExecutor(_THREADS, "cloudtrain-upload")
        self.sent = 0
        """Bytes that went over the network; the rest lay there."""

    def send(self, files: Iterable[Outgoing]) -> None:
        """Send them all; what follows is sent when all are there."""
        all_of_them = list(files)
        large = [file for file in all_of_them if file.once and file.size > PART_BYTES]
        for done in as_completed([self._pool.submit(self._put, file) for file in all_of_them if file not in large]):
            size, sent = done.result()
            self.sent += sent
            self._tell(size)
        for file in large:
            self._send_large(file)

    def close(self) -> None:
        """Wait for what is being sent; nothing more is begun."""
        self._pool.shutdown(cancel_futures=True)

    def _put(self, outgoing: Outgoing) -> tuple[int, int]:
        """One file at once: its size, and what of it was sent."""
        bucket, key = split(outgoing.uri)
        condition = {"IfNoneMatch": "*"} if outgoing.once else {}
        body = piece(outgoing.file, 0, outgoing.size)
        left = _TRIES
        while True:
            left -= 1
            try:
                with asking(f"send {outgoing.uri}", self._region):
                    self._s3.put_object(Bucket=bucket, Key=key, Body=body, **condition)
                return outgoing.size, outgoing.size
            except AlreadyThere:
                return outgoing.size, 0
            except CutIn:
                if not left:
                    raise
            _give_way()

    def _send_large(self, outgoing: Outgoing) -> None:
        """One file in parts, anew where another upload has cut in. Whatever goes wrong, what is there is there."""
        told, left = 0, _TRIES
        while True:
            left -= 1
            upload = Upload(self._s3, *split(outgoing.uri), outgoing.file)
            try:
                with asking(f"send {outgoing.uri}", self._region):
                    for size in self._parts(upload, outgoing.size):
                        step = min(size, outgoing.size - told)
                        told += step
                        self._tell(step)
                return
            except (AlreadyThere, CutIn, UnreachableError) as error:
                if exists(self._s3, outgoing.uri, self._region):
                    break
                if not left or not isinstance(error, (AlreadyThere, CutIn, NoSense)):
                    raise
            _give_way()
        with asking(f"remove what was sent of {outgoing.uri}", self._region):
            upload.abort_all()
        self._tell(outgoing.size - told)

    def _parts(self, upload: Upload, size: int) -> Iterator[int]:
        """Sends one upload; gives the bytes that are there, as they come to be there."""
        missing = upload.begin()
        yield size - sum(part.size for part in missing)
        for done in as_completed([self._pool.submit(upload.send, part) for part in missing]):
            self.sent += done.result()
            yield done.result()
        upload.complete()
        upload.abort_all()


def _give_way() -> None:
    """Let the other upload of the same object go on."""
    time.sleep(random.uniform(0.2, 1.0))
