"""Folders of this machine put where a cloud would have them, as links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath

from cloudtrain.errors import MissingError


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
        link = place / key_of(path, source)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path.resolve())


def objects_of(source: Path) -> list[Path]:
    """All files of a channel, in the order in which an object store lists them: by the text of their keys. A channel
    may be a single file. Raises MissingError for a folder that may not be read."""
    try:
        files = [source] if source.is_file() else list(_below(source, frozenset()))
    except OSError as error:
        raise MissingError(f"cannot read {error.filename or source}: {error.strerror or error}") from error
    return sorted(files, key=lambda path: key_of(path, source))


def _below(folder: Path, above: frozenset[Path]) -> Iterator[Path]:
    """Links are followed as the launcher's own list of objects follows them: not back up to where they lie."""
    above |= {folder.resolve()}
    for child in folder.iterdir():
        if child.is_file():
            yield child
        elif child.is_dir() and not (child.is_symlink() and child.resolve() in above):
            yield from _below(child, above)


def key_of(path: Path, source: Path) -> str:
    """The name of a channel's object: its path below the channel's folder, or its own for a channel of one file."""
    return path.relative_to(source.parent if path == source else source).as_posix()


def too_few(name: str, objects: int, nodes: int) -> Iterator[str]:
    """What to tell the user of ``shard: by-object`` where some nodes get nothing."""
    if objects < nodes:
        yield f"data.{name}: {objects} objects for {nodes} nodes: some nodes get none"
