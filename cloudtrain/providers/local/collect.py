"""After the nodes' end: what each has written on a disk of its own is put together, as the cloud does it.

Nothing but what lies in a node's own folder is moved: where the script has put a link in the place of a folder, what it
leads to is the user's, and stays.
"""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from cloudtrain.providers.local.rehearsal import Rehearsal, inside
from cloudtrain.providers.local.translate import Places
from cloudtrain.wording import printable

_MOST_NOTES = 10


def collect(rehearsal: Rehearsal, places: Places) -> list[str]:
    """Move ``model`` and ``output`` of every node into the run's own. Returns what to tell the user: what could not be
    moved, and files that more than one node has written, of which the cloud keeps one, and nobody knows which."""
    notes: list[str] = []
    into = {"model": places.folder.model, "output": places.folder.path / "output"}
    for what in sorted(rehearsal.own_disk):
        taken: dict[str, int] = {}
        for node, contract in enumerate(rehearsal.contracts):
            place = next(path for path, lies in contract.places.items() if lies == what)
            root = rehearsal.root(node, places).resolve()
            source = root / place
            laid = {path.as_posix() for path in inside(place, contract)}  # such as metrics
            if source.is_dir() and source.resolve() == source:
                notes += _merge(source, laid, into[what], what, node, taken)
            elif os.path.lexists(source):
                notes.append(f"{what} of node {node} is no folder of the node's any more, and stays as it is: {source}")
    left_out = len(notes) - _MOST_NOTES
    return [*notes[:_MOST_NOTES], f"and {left_out} more like these"] if left_out > 0 else notes


def _merge(source: Path, laid: set[str], target: Path, what: str, node: int, taken: dict[str, int]) -> Iterator[str]:
    """Node by node, the first one wins. ``laid`` are links of ours, ``taken``: path -> the node whose file is there."""
    for path in _files(source):
        name = path.relative_to(source).as_posix()
        shown = _shown(f"{what}/{name}")
        try:
            if name not in laid and not _move(path, target, name):
                first = taken.get(name, 0)
                yield f"{shown} differs between nodes {first} and {node}; the cloud keeps one, here it is {first}'s"
            taken.setdefault(name, node)
        except OSError as error:
            yield f"{shown} of node {node} stays in {source}: {error.strerror or error}"


def _move(path: Path, target: Path, name: str) -> bool:
    """Move it to ``target``; False if something else is there already."""
    goal = target / name
    if os.path.lexists(goal):
        return _same(path, goal)
    goal.parent.mkdir(parents=True, exist_ok=True)
    if not goal.parent.resolve().is_relative_to(target.resolve()):
        raise OSError("another node has put a link in its way")
    shutil.move(path, goal)
    return True


def _files(folder: Path) -> Iterator[Path]:
    """All files, pipes and links; links are not followed."""
    for parent, folders, names in os.walk(folder):
        links = [name for name in folders if Path(parent, name).is_symlink()]
        yield from (Path(parent, name) for name in sorted([*names, *links]))


def _same(one: Path, other: Path) -> bool:
    if one.is_symlink() or other.is_symlink():
        return one.is_symlink() and other.is_symlink() and one.readlink() == other.readlink()
    return filecmp.cmp(one, other, shallow=False)


def _shown(name: str) -> str:
    """A script may give files names that a terminal would obey."""
    return printable(name)
