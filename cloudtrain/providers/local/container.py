"""The nodes' folders of ``run --as``: what a cloud's contract says lies where, written for real.

shipped/code/    launch.py & co, code.tar.gz        what would be uploaded, once for all nodes
shipped/spec/    spec.json
request.json     the native request
nodes/<k>/       node k's file system, as far as the contract speaks of it: its files, and links to the folders
                 above, to the data of this machine and to the run's own folders
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePath

from cloudtrain.bundle import Bundle
from cloudtrain.providers.base import NodeContract
from cloudtrain.providers.local.links import lay, lay_share, objects_of, too_few
from cloudtrain.providers.local.rehearsal import Rehearsal, field, inside
from cloudtrain.providers.local.translate import LocalRequest, Places
from cloudtrain.providers.shipping import write_code, write_spec
from cloudtrain.record.folder import write_json


def fill(rehearsal: Rehearsal, request: LocalRequest, bundle: Bundle) -> list[str]:
    """Write what ships and every node's folder. Returns what to tell the user. Raises OSError, or MissingError as
    bundles do."""
    folder = request.places.folder.path
    write_code(bundle, folder / "shipped/code")
    write_spec(request.spec, folder / "shipped/spec")
    write_json(folder / "request.json", rehearsal.request.native)
    for path in (request.places.checkpoints, *request.places.outputs.values()):
        path.mkdir(parents=True, exist_ok=True)
    containers = _Containers(rehearsal, request.places)
    for node, contract in enumerate(rehearsal.contracts):
        containers.fill(node, contract)
    return list(containers.notes())


class _Containers:
    """What lies where, for all nodes."""

    def __init__(self, rehearsal: Rehearsal, places: Places) -> None:
        self._rehearsal = rehearsal
        self._places = places
        self._sources = dict(_sources(places))
        self._objects = {
            f"data:{name.lower()}": objects_of(places.data[name])
            for name, channel in rehearsal.job.data.items()
            if channel.shard == "by-object"
        }

    def fill(self, node: int, contract: NodeContract) -> None:
        """Write one node's folder."""
        root = self._rehearsal.root(node, self._places)
        for name, text in contract.files.items():
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        for name, what in sorted(contract.places.items()):  # a folder before what lies in it
            self._lay(node, root / name, what.lower(), inside(name, contract))

    def _lay(self, node: int, place: Path, what: str, taken: list[PurePath]) -> None:
        source = self._sources.get(what)
        if source is None or what in self._rehearsal.own_disk:
            place.mkdir(parents=True, exist_ok=True)
        elif what in self._objects and not self._rehearsal.is_shared_out_by_launcher(what):
            lay_share(place, source, self._objects[what][node :: len(self._rehearsal.contracts)])
        elif what.startswith("data:") and self._rehearsal.channels_are_folders and source.is_file():
            lay(place / source.name, source)
        elif what == "code" or what.startswith("data:"):  # nobody writes there, so it may be a folder of links
            lay(place, source, taken)
        else:
            lay(place, source)

    def notes(self) -> Iterator[str]:
        """What to tell the user."""
        for what, objects in self._objects.items():
            yield from too_few(what.partition(":")[2], len(objects), len(self._rehearsal.contracts))
        laid = {what for what in self._rehearsal.contracts[0].places.values() if what.lower() not in self._sources}
        for what in sorted(laid):
            yield f"{field(what)} comes from overrides and is an empty folder here"


def _sources(places: Places) -> Iterator[tuple[str, Path]]:
    """What lies somewhere, in small letters -> the folder here that stands for it."""
    folder = places.folder.path
    yield from {
        "code": folder / "shipped/code",
        "spec": folder / "shipped/spec",
        "checkpoints": places.checkpoints,
        "model": places.folder.model,
        "output": folder / "output",
        "metrics": places.folder.metrics,
    }.items()
    yield from ((f"output:{name.lower()}", path) for name, path in places.outputs.items())
    yield from ((f"data:{name.lower()}", path) for name, path in places.data.items())
