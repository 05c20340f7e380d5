"""What a request needs in S3 before it is sent: the code, by the digest of its content, and spec.json.

The folder of the code has its digest for a name, so one list of what lies there says what is missing; launch.py is sent
last, and a folder that holds it is complete, whoever looks. Nothing is sent, and no archive made, where it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from cloudtrain.errors import MissingError
from cloudtrain.providers import shipping
from cloudtrain.providers.localdata import objects
from cloudtrain.providers.port import Progress, Uploaded
from cloudtrain.providers.sagemaker.s3 import content, stored
from cloudtrain.providers.sagemaker.sending import Outgoing, Sender
from cloudtrain.record.folder import cannot_write

if TYPE_CHECKING:
    from cloudtrain.bundle import Bundle
    from cloudtrain.providers.base import Request, Shipped
    from cloudtrain.providers.sagemaker.session import Services

_LAST = "launch.py"
_NEEDED = (shipping.ARCHIVE, _LAST)


def upload(services: Services, request: Request, bundle: Bundle | None, progress: Progress) -> Uploaded:
    """See ``Client.upload``."""
    try:
        with TemporaryDirectory(prefix="cloudtrain-") as scratch:
            return _Upload(services, Path(scratch)).run(request, bundle, progress)
    except OSError as error:
        raise cannot_write(error, Path(error.filename or "")) from error


class _Upload:
    def __init__(self, services: Services, scratch: Path) -> None:
        self._s3 = services.s3
        self._region = services.region
        self._scratch = scratch
        self._present = 0

    def run(self, request: Request, bundle: Bundle | None, progress: Progress) -> Uploaded:
        outgoing: list[Outgoing] = []
        for number, ships in enumerate(request.ships):
            folder = self._scratch / str(number)
            if ships.kind == "code":
                outgoing += self._code(ships.to, bundle, folder)
            elif ships.kind == "data":
                outgoing += self._data(ships)
            else:
                outgoing += self._spec(ships.to, request, folder)
        total = self._present + sum(file.size for file in outgoing)
        done = self._present
        progress(done, total)

        def tell(size: int) -> None:
            nonlocal done
            done += size
            progress(done, total)

        sender = Sender(self._s3, self._region, tell)
        try:
            sender.send(file for file in outgoing if file.file.name != _LAST)
            sender.send(file for file in outgoing if file.file.name == _LAST)
        finally:
            sender.close()
        return Uploaded(sender.sent, total - sender.sent)

    def _code(self, to: str, bundle: Bundle | None, folder: Path) -> Iterator[Outgoing]:
        there = {found.path: found.size for found in stored(self._s3, to, self._region)}
        wanted = _NEEDED if bundle is None else shipping.code_names()
        if there.keys() >= set(wanted):
            self._present += sum(there[name] for name in wanted)
            return
        if bundle is None:
            raise MissingError(
                f"the code of the earlier attempt is not at {to} any more",
                hint="submit the job anew from the folder of its code",
            )
        shipping.write_code(bundle, folder)
        for name in wanted:
            file = folder / name
            if name in there:
                self._present += there[name]
            else:
                yield Outgoing(file, f"{to}{name}", file.stat().st_size, once=True)

    def _data(self, ships: Shipped) -> Iterator[Outgoing]:
        """The folder has the digest of all its files for a name: what lies in it is what is to lie there."""
        there = {found.path: found.size for found in stored(self._s3, ships.to, self._region)}
        for key, file in objects(Path(ships.source)):
            if key in there:
                self._present += there[key]
            else:
                yield Outgoing(file, f"{ships.to}{key}", file.stat().st_size, once=True)

    def _spec(self, to: str, request: Request, folder: Path) -> Iterator[Outgoing]:
        shipping.write_spec(request.spec, folder)
        file, uri = folder / shipping.SPEC, f"{to}{shipping.SPEC}"
        written = file.read_bytes()
        if content(self._s3, uri, len(written) + 1, self._region) == written:
            self._present += len(written)
        else:
            yield Outgoing(file, uri, len(written), once=False)
