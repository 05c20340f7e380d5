"""Folders of this machine put where a cloud would have them, as links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath


def lay(place: Path, source: Path, taken: Iterable[PurePath] = ()) -> None:
    """Make ``place`` a link to ``source``; or a folder of links, if something else is to lie in it at the paths
    ``taken``."""
    if place.is_symlink():  # a place within a folder that all nodes share
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    taken = list(taken)
    if not taken or source.is_file():
        place.symlink_to(source.absolute())
        return
    place.mkdir()
    for child in source.iterdir():
        inside = [path.relative_to(child.name) for path in taken if path.parts[0] == child.name]
        if PurePath() not in inside:
            lay(place / child.name, child, inside)


def lay_share(place: Path, source: Path, files: Iterable[Path]) -> None:
    """Make ``place`` a new folder with links to ``files`` of ``source``, each where it lies there."""
    place.mkdir(parents=True)
    for path in files:
        link = place / path.relative_to(source)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path.resolve())


def objects_of(source: Path) -> list[Path]:
    """All files of a channel, in the order in which an object store lists them: by the text of their keys."""
    files = [path for path in source.rglob("*") if path.is_file()]
    return sorted(files, key=lambda path: path.relative_to(source).as_posix())


def too_few(name: str, objects: int, nodes: int) -> Iterator[str]:
    """What to tell the user of ``shard: by-object`` where some nodes get nothing."""
    if objects < nodes:
        yield f"data.{name}: {objects} objects for {nodes} nodes: some nodes get none"
