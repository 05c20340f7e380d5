"""What of a request's code, data and spec has to be sent before it: found out from what lies in the store.

Folders of code and data have the digest of their content for a name, so one list of what lies there says what is
missing. launch.py is sent last, and a folder of code that holds it is complete, whoever looks. No archive is made where
nothing is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cloudtrain.errors import MissingError
from cloudtrain.providers import shipping
from cloudtrain.providers.localdata import objects
from cloudtrain.record.folder import cannot_write

if TYPE_CHECKING:
    from cloudtrain.bundle import Bundle
    from cloudtrain.providers.base import Request, Shipped

_LAST = "launch.py"
_NEEDED = (shipping.ARCHIVE, _LAST)


class Lying(Protocol):
    """What an account sees of its store."""

    def sizes(self, folder: str) -> Mapping[str, int]:
        """All objects below the URI of a folder: their names behind it, and their bytes."""

    def content(self, uri: str, most: int) -> bytes | None:
        """The first ``most`` bytes of an object; None if there is none."""


class Outgoing(NamedTuple):
    """A file, and the object it is to be."""

    file: Path
    uri: str
    size: int
    once: bool
    """Its name stands for its content: what is there already is right."""
    is_last: bool = False
    """To be sent when all others are there."""


class Missing(NamedTuple):
    """What is to be sent. The files are there as long as ``missing`` lasts."""

    first: tuple[Outgoing, ...]
    last: tuple[Outgoing, ...]
    """When all of the first are there."""
    size: int
    """Bytes of all that."""
    present: int
    """Bytes that lie there already."""


@contextmanager
def missing(request: Request, bundle: Bundle | None, lying: Lying) -> Iterator[Missing]:
    """What of ``request.ships`` does not lie where the request says. ``bundle`` None: the code must be there.

    Raises MissingError if it is not, and for a disk that is full, also while what is missing is being sent.
    """
    try:
        with TemporaryDirectory(prefix="cloudtrain-") as scratch:
            found = _Looking(lying, Path(scratch))
            outgoing = list(found.at_all(request, bundle))
            first = tuple(one for one in outgoing if not one.is_last)
            last = tuple(one for one in outgoing if one.is_last)
            yield Missing(first, last, sum(one.size for one in outgoing), found.present)
    except OSError as error:
        raise cannot_write(error, Path(error.filename or "")) from error


class _Looking:
    def __init__(self, lying: Lying, scratch: Path) -> None:
        self._lying = lying
        self._scratch = scratch
        self.present = 0

    def at_all(self, request: Request, bundle: Bundle | None) -> Iterator[Outgoing]:
        for number, ships in enumerate(request.ships):
            folder = self._scratch / str(number)
            if ships.kind == "code":
                yield from self._code(ships.to, bundle, folder)
            elif ships.kind == "data":
                yield from self._data(ships)
            else:
                yield from self._spec(ships.to, request, folder)

    def _code(self, to: str, bundle: Bundle | None, folder: Path) -> Iterator[Outgoing]:
        there = self._lying.sizes(to)
        wanted = _NEEDED if bundle is None else shipping.code_names()
        if there.keys() >= set(wanted):
            self.present += sum(there[name] for name in shipping.code_names() if name in there)
            return
        if bundle is None:
            raise MissingError(
                f"the code of the earlier attempt is not at {to} any more",
                hint="submit the job anew from the folder of its code",
            )
        shipping.write_code(bundle, folder)
        for name in wanted:
            if name in there:
                self.present += there[name]
            else:
                file = folder / name
                yield Outgoing(file, f"{to}{name}", file.stat().st_size, once=True, is_last=name == _LAST)

    def _data(self, ships: Shipped) -> Iterator[Outgoing]:
        there = self._lying.sizes(ships.to)
        for key, file in objects(Path(ships.source)):
            if key in there:
                self.present += there[key]
            else:
                yield Outgoing(file, f"{ships.to}{key}", file.stat().st_size, once=True)

    def _spec(self, to: str, request: Request, folder: Path) -> Iterator[Outgoing]:
        shipping.write_spec(request.spec, folder)
        file, uri = folder / shipping.SPEC, f"{to}{shipping.SPEC}"
        written = file.read_bytes()
        if self._lying.content(uri, len(written) + 1) == written:
            self.present += len(written)
        else:
            yield Outgoing(file, uri, len(written), once=False)
