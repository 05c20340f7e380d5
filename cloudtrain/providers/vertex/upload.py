"""What a request needs in Cloud Storage before it is sent: see ``providers/uploading.py``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cloudtrain.providers.port import Progress, Uploaded
from cloudtrain.providers.uploading import missing
from cloudtrain.providers.vertex.parts import Parts
from cloudtrain.providers.vertex.sending import Sender
from cloudtrain.providers.vertex.store import Store

if TYPE_CHECKING:
    from cloudtrain.bundle import Bundle
    from cloudtrain.providers.base import Request


def upload(store: Store, request: Request, bundle: Bundle | None, progress: Progress) -> Uploaded:
    """See ``Client.upload``."""
    with missing(request, bundle, _Lying(store)) as found:
        known, total = found.present, found.present + found.size
        progress(known, total)
        if not found.size:
            return Uploaded(0, total)
        sender = Sender(store, Parts(store, _root(request)), lambda done: progress(min(known + done, total), total))
        try:
            sender.send(found.first)
            sender.send(found.last)
            sender.tidy([ships.to for ships in request.ships])
        finally:
            sender.close()
        progress(total, total)
        return Uploaded(total - known - sender.present, known + sender.present)


def _root(request: Request) -> str:
    """The folder under which cloudtrain keeps all: that of the code lies two below it."""
    code = next(ships.to for ships in request.ships if ships.kind == "code")
    return f"{code.rstrip('/').rsplit('/', 2)[0]}/"


class _Lying:
    def __init__(self, store: Store) -> None:
        self._store = store

    def sizes(self, folder: str) -> Mapping[str, int]:
        return {found.path: found.size for found in self._store.below(folder)}

    def content(self, uri: str, most: int) -> bytes | None:
        return self._store.content(uri, most)
