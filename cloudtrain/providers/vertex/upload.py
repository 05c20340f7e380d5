"""What a request needs in Cloud Storage before it is sent: the code, by the digest of its content, and spec.json.

The folder of the code has its digest for a name, so one list of what lies there says what is missing; launch.py is sent
last, and a folder that holds it is complete, whoever looks. Nothing is sent, and no archive made, where it is.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from cloudtrain.errors import MissingError
from cloudtrain.providers import shipping
from cloudtrain.providers.localdata import objects
from cloudtrain.providers.port import Progress, Uploaded
from cloudtrain.providers.vertex.sending import Outgoing, Sender
from cloudtrain.providers.vertex.store import Store
from cloudtrain.record.folder import cannot_write

if TYPE_CHECKING:
    from cloudtrain.bundle import Bundle
    from cloudtrain.providers.base import Request, Shipped

_LAST = "launch.py"


def upload(store: Store, request: Request, bundle: Bundle | None, progress: Progress) -> Uploaded:
    """See ``Client.upload``."""
    try:
        with TemporaryDirectory(prefix="cloudtrain-") as scratch:
            return _Upload(store, Path(scratch)).run(request, bundle, progress)
    except OSError as error:
        raise cannot_write(error, Path(error.filename or "")) from error


class _Upload:
    def __init__(self, store: Store, scratch: Path) -> None:
        self._store = store
        self._scratch = scratch
        self._present = 0
        self._outgoing: list[Outgoing] = []
        self._parts: set[str] = set()

    def run(self, request: Request, bundle: Bundle | None, progress: Progress) -> Uploaded:
        for number, ships in enumerate(request.ships):
            folder = self._scratch / str(number)
            if ships.kind == "code":
                self._look_at_code(ships.to, bundle, folder)
            elif ships.kind == "data":
                self._look_at_data(ships)
            else:
                self._look_at_spec(ships.to, request, folder)
        return self._sent(progress)

    def _sent(self, progress: Progress) -> Uploaded:
        known = self._present
        total = known + sum(one.size for one in self._outgoing)
        progress(known, total)
        if not self._outgoing:
            return Uploaded(0, total)
        sender = Sender(self._store, lambda done: progress(min(known + done, total), total))
        try:
            sender.send((one for one in self._outgoing if one.file.name != _LAST), self._parts)
            sender.send(one for one in self._outgoing if one.file.name == _LAST)
        finally:
            sender.close()
        progress(total, total)
        return Uploaded(total - known - sender.present, known + sender.present)

    def _look_at_code(self, to: str, bundle: Bundle | None, folder: Path) -> None:
        there = {found.path: found.size for found in self._store.below(to)}
        names = shipping.code_names()
        if _LAST in there:
            self._present += sum(size for name, size in there.items() if name in names)
            return
        if bundle is None:
            raise MissingError(
                f"the code of the earlier attempt is not at {to} any more",
                hint="submit the job anew from the folder of its code",
            )
        shipping.write_code(bundle, folder)
        for name in names:
            if name in there:
                self._present += there[name]
            else:
                self._outgoing.append(Outgoing(folder / name, f"{to}{name}", once=True))
        self._parts |= {f"{to}{name}" for name in there if name not in names}

    def _look_at_data(self, ships: Shipped) -> None:
        """The folder has the digest of all its files for a name: what lies in it is what is to lie there."""
        there = {found.path: found.size for found in self._store.below(ships.to)}
        for key, file in objects(Path(ships.source)):
            if key in there:
                self._present += there.pop(key)
            else:
                self._outgoing.append(Outgoing(file, f"{ships.to}{key}", once=True))
        self._parts |= {f"{ships.to}{name}" for name in there}

    def _look_at_spec(self, to: str, request: Request, folder: Path) -> None:
        shipping.write_spec(request.spec, folder)
        file, uri = folder / shipping.SPEC, f"{to}{shipping.SPEC}"
        written = file.read_bytes()
        if self._store.content(uri, len(written) + 1) == written:
            self._present += len(written)
        else:
            self._outgoing.append(Outgoing(file, uri, once=False))
