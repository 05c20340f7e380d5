"""Files to a container of Azure's blob storage: several at once, with a count of what has gone."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cloudtrain.providers.port import Progress

if TYPE_CHECKING:
    from azure.storage.blob import ContainerClient

_THREADS = 5
"""With two blocks each as many as the vendor's client keeps connections."""
_LOOK_SECONDS = 0.1


class File(NamedTuple):
    """One file that is to be sent."""

    name: str
    """With forward slashes, below the folder it goes to."""
    source: Path
    size: int


def send(container: ContainerClient, folder: str, files: Sequence[File], progress: Progress) -> None:
    """Send files to a folder (no slash at its end). Side by side, large files in blocks, each block again if it was
    cut. What another submit has put there is written over: it is equal."""
    done = dict.fromkeys((file.name for file in files), 0)
    total = sum(file.size for file in files)

    def put(file: File) -> None:
        def so_far(sent: int, _total: Any) -> None:
            done[file.name] = sent

        with file.source.open("rb") as content:
            blob = container.get_blob_client(f"{folder}/{file.name}")
            blob.upload_blob(content, length=file.size, overwrite=True, max_concurrency=2, progress_hook=so_far)
        done[file.name] = file.size

    with ThreadPoolExecutor(_THREADS) as pool:
        largest_first = sorted(files, key=lambda file: -file.size)
        sending = {pool.submit(put, file) for file in largest_first}
        try:
            while sending:
                finished, sending = wait(sending, _LOOK_SECONDS, FIRST_EXCEPTION)
                for future in finished:
                    future.result()
                progress(sum(done.values()), total)
        except BaseException:
            for future in sending:
                future.cancel()
            raise
