"""After the nodes' end: what each has written on a disk of its own is put together, as the cloud does it."""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from cloudtrain.providers.local.rehearsal import Rehearsal
from cloudtrain.providers.local.translate import Places


def collect(rehearsal: Rehearsal, places: Places) -> list[str]:
    """Move ``model`` and ``output`` of every node into the run's own. Returns what to tell the user: files that more
    than one node has written, of which the cloud keeps one, and nobody knows which."""
    notes: list[str] = []
    into = {"model": places.folder.model, "output": places.folder.path / "output"}
    for what in sorted(rehearsal.own_disk):
        taken: dict[str, int] = {}
        for node, contract in enumerate(rehearsal.contracts):
            place = next(path for path, lies in contract.places.items() if lies == what)
            notes += _merge(rehearsal.root(node, places) / place, into[what], what, node, taken)
    return notes


def _merge(source: Path, target: Path, what: str, node: int, taken: dict[str, int]) -> Iterator[str]:
    """Node by node, the first one wins. ``taken``: path -> the node whose file is there."""
    for path in _files(source):
        name = path.relative_to(source).as_posix()
        goal = target / name
        if name not in taken and not os.path.lexists(goal):
            goal.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, goal)
            taken[name] = node
        elif not filecmp.cmp(path, goal, shallow=False):
            first = taken.get(name, 0)
            yield f"{what}/{name} differs between nodes {first} and {node}; the cloud keeps one, here it is {first}'s"


def _files(folder: Path) -> Iterator[Path]:
    """All files; links to folders are the contract's own (metrics), or the script's, and stay."""
    for parent, _, names in os.walk(folder):
        yield from (Path(parent, name) for name in sorted(names))
