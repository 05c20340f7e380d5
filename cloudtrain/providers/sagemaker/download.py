"""One object of S3 into a file: large ones in parts at once, which s3transfer asks for again where one is cut off."""

from __future__ import annotations

import threading
from typing import IO, Any

from cloudtrain.providers.port import Progress
from cloudtrain.providers.sagemaker.errors import asking
from cloudtrain.providers.sagemaker.s3 import split

_THREADS = 8
_LOOK_SECONDS = 0.2


def download(s3: Any, uri: str, file: IO[bytes], region: str, progress: Progress) -> None:
    """All of the object into ``file``, which is empty and can be sought in."""
    from s3transfer.manager import TransferConfig, TransferManager

    bucket, key = split(uri)
    arrival = _Arrival()
    with asking(f"download {uri}", region):
        with TransferManager(s3, TransferConfig(max_request_concurrency=_THREADS)) as manager:
            future = manager.download(bucket, key, file, subscribers=[arrival])
            while not arrival.over.wait(_LOOK_SECONDS):
                progress(arrival.done, future.meta.size or arrival.done)
            future.result()
        progress(arrival.done, arrival.done)


class _Arrival:
    """Counts what has come. Called by s3transfer's threads; whoever waits looks at it."""

    def __init__(self) -> None:
        self.done = 0
        self.over = threading.Event()
        self._lock = threading.Lock()

    def on_progress(self, bytes_transferred: int, **_: Any) -> None:
        """Negative for what has to come again."""
        with self._lock:
            self.done += bytes_transferred

    def on_done(self, **_: Any) -> None:
        """Whether it went well the future says."""
        self.over.set()
