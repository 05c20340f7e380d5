"""Folders of the storage account on this machine, for all nodes of one job.

A mount of the service's is a view of the account: what a node writes and closes is there for all others. Here it is a
folder that all nodes share, one for each container, laid out as the container is: filled when the job starts, and
compared with the account again and again while it runs. Two mounts of which one lies in the other are one folder, so.
Links, which a mount of the service's does not take, stay here (see ordinary.py).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from cloudtrain.emulator.azureml.blobs import Blobs, Place
from cloudtrain.emulator.azureml.ordinary import contents

LeftOut = Callable[[str, str], None]
"""Is told the path of what cannot be a blob, and in a few words what it is; of the same thing again and again."""


class _Look(NamedTuple):
    """What a file looked like."""

    size: int
    changed: int
    """Nanoseconds."""
    inode: int


class Mounts:
    """Those of one job. For its life's thread alone."""

    def __init__(self, folder: Path, blobs: Blobs, left_out: LeftOut) -> None:
        self._folder = folder
        self._blobs = blobs
        self._left_out = left_out
        self._filled: list[Place] = []
        self._mirrors: list[_Mirror] = []

    def read(self, place: Place) -> Path:
        """The folder, or the single file, that lies there. Raises LookupError where there is nothing."""
        folder = self._local(place)
        self._fill(place)
        if folder.exists() and not folder.is_symlink():
            return folder
        if folder.is_symlink() or not place.path or not self._blobs.has(place):
            raise LookupError(f"nothing lies at {place.path} of container {place.container}")
        self._blobs.fetch(place, folder)
        return folder

    def written(self, place: Place) -> Path:
        """The folder whose content goes back there."""
        self._fill(place)
        folder = self._local(place)
        folder.mkdir(parents=True, exist_ok=True)
        self.send(folder, place)
        return folder

    def send(self, folder: Path, place: Place) -> None:
        """From now on what changes in ``folder`` changes there, too; what lies there already is known."""
        if not any(mirror.place.holds(place) and folder.is_relative_to(mirror.folder) for mirror in self._mirrors):
            self._mirrors = [
                mirror
                for mirror in self._mirrors
                if not (place.holds(mirror.place) and mirror.folder.is_relative_to(folder))
            ]
            self._mirrors.append(_Mirror(folder, place, self._blobs, self._left_out))

    def sync(self, *, final: bool = False) -> None:
        """Carry changes there. A file that is being written waits, unless this is the last time."""
        for mirror in self._mirrors:
            mirror.sync(final=final)

    def _local(self, place: Place) -> Path:
        return self._folder / place.container / place.path

    def _fill(self, place: Place) -> None:
        """Fetch what lies there, once: later the folder has what the nodes have written."""
        if self._is_filled(place):
            return
        names = (
            name for name in self._blobs.names(place) if not self._is_filled(place._replace(path=place.blob(name)))
        )
        self._blobs.fetch_all(place, names, self._local(place))
        self._filled.append(place)

    def _is_filled(self, place: Place) -> bool:
        return any(known.holds(place) for known in self._filled)


class _Mirror:
    """A folder, and the place that is to look like it."""

    def __init__(self, folder: Path, place: Place, blobs: Blobs, left_out: LeftOut) -> None:
        self.folder = folder
        self.place = place
        self._blobs = blobs
        self._left_out = left_out
        self._sent = self._looks()
        self._seen: dict[str, _Look] = {}

    def sync(self, *, final: bool) -> None:
        now = self._looks()
        for name in self._sent.keys() - now.keys():
            self._blobs.remove(self._at(name))
            del self._sent[name]
        for name, look in now.items():
            if self._sent.get(name) != look and (final or self._seen.get(name) == look):
                self._put(name, look, final)
        self._seen = now

    def _put(self, name: str, look: _Look, final: bool) -> None:
        try:
            self._blobs.put(self._at(name), self.folder / name)
        except (OSError, ValueError, self._blobs.failed):
            if final:
                raise
            return  # it has changed under our hands: the next time
        self._sent[name] = look  # of before: whatever came in meanwhile is going to be seen as a change

    def _at(self, name: str) -> Place:
        return Place(self.place.container, self.place.blob(name))

    def _looks(self) -> dict[str, _Look]:
        """All files below it."""
        found = contents(self.folder)
        for name, kind in found.others.items():
            self._left_out(self.place.blob(name), kind)
        return {name: _Look(file.st_size, file.st_mtime_ns, file.st_ino) for name, file in found.files.items()}
