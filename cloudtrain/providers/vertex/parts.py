"""Parts of large files on their way: objects in a folder of their own, of which the service then makes one.

A cut, even of this machine, leaves them there. The next upload of the same file goes on with them, and in the end
removes all that there are of its folder, those as well that another cloudtrain has cut otherwise. Parts of files that
nobody sends again are removed by whichever upload comes a day later. A lifecycle rule for the folder does no harm: what
is missing is sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from concurrent.futures import Executor
from functools import cached_property
from pathlib import Path
from time import time
from typing import NamedTuple

from cloudtrain.providers.uploading import Outgoing
from cloudtrain.providers.vertex.places import SCHEME
from cloudtrain.providers.vertex.store import TIMEOUT, Store, Stored

PART_BYTES = 32 << 20
_MOST_PARTS = 32
"""The service makes an object of at most so many others."""
_ABANDONED_SECONDS = 86_400.0
"""Since a part was written. An upload that goes on for longer sends it again."""


class Part(NamedTuple):
    """A piece of a file, and the object that holds it for the time being."""

    file: Path
    uri: str
    start: int
    size: int


class Parts:
    """Those below one folder of cloudtrain's in a bucket."""

    def __init__(self, store: Store, root: str) -> None:
        """``root``: the URI of that folder, with a slash at its end."""
        self._store = store
        self._root = root

    def are_needed(self, one: Outgoing) -> bool:
        """Whether a file is large enough to be sent in parts."""
        return one.once and one.size > PART_BYTES

    def of(self, one: Outgoing) -> list[Part]:
        """How a file is cut. Their names hold a digest of its bytes: two archives of the same files may differ, since
        another zlib makes other bytes of them."""
        each = max(PART_BYTES, -(-one.size // _MOST_PARTS))
        begin = f"{self._begin(one)}{_digest(one.file)}."
        return [
            Part(one.file, f"{begin}{number:02}", start, min(each, one.size - start))
            for number, start in enumerate(range(0, one.size, each))
        ]

    def lying(self, one: Outgoing) -> set[str]:
        """The URIs of parts of a file that lay there when this was asked for the first time."""
        return {uri for uri in map(_uri, self._left) if uri.startswith(self._begin(one))}

    def remove(self, uris: Collection[str], pool: Executor) -> None:
        """What is not removed costs a little and harms nothing: not everybody who may write may delete."""
        from google.api_core.exceptions import GoogleAPICallError

        def remove(uri: str) -> None:
            try:
                self._store.blob(uri).delete(timeout=TIMEOUT, retry=None)
            except (GoogleAPICallError, OSError):
                pass

        list(pool.map(remove, uris))

    def remove_left(self, folders: Collection[str], pool: Executor) -> None:
        """Those of files below these folders, which are all there now, and those that were given up."""
        whole = tuple(map(self._place, folders))
        old = time() - _ABANDONED_SECONDS
        self.remove([uri for part in self._left if (uri := _uri(part)).startswith(whole) or part.created < old], pool)

    def _begin(self, one: Outgoing) -> str:
        return f"{self._place(one.uri)}."

    def _place(self, uri: str) -> str:
        return f"{self._root}parts/{uri.removeprefix(self._root)}"

    @cached_property
    def _left(self) -> list[Stored]:
        return list(self._store.below(f"{self._root}parts/"))


def _uri(part: Stored) -> str:
    return f"{SCHEME}{part.bucket}/{part.name}"


def _digest(file: Path) -> str:
    found = hashlib.sha256()
    with file.open("rb") as content:
        while piece := content.read(1 << 20):
            found.update(piece)
    return found.hexdigest()[:16]
