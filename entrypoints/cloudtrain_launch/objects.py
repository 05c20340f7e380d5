"""A folder as an object store has it: keys in the store's order, copied a few at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Callable

_AT_ONCE = 8
"""An object store answers slowly and in parallel."""
_SHOWN = 5


def keys(folder: str, label: str = "") -> list[str]:
    """The files below ``folder`` as keys relative to it, sorted as stores sort: by their UTF-8 bytes.

    Links are followed, but not back up to where they lie. What is neither file nor folder (a pipe, a link that leads
    nowhere) is left out, which is said under ``label``.
    """
    files: list[str] = []
    others: list[str] = []
    for key, is_file in _entries(folder, "", {os.path.realpath(folder)}):
        (files if is_file else others).append(key)
    if label and others:
        print(f"{label}: left out, since they are no files: {_some(sorted(others))}", flush=True)
    return sorted(files, key=os.fsencode)


def _entries(folder: str, inside: str, above: set[str]) -> Iterator[tuple[str, bool]]:
    """Key, and whether it is a file, of all below that are no folders. What the listing says of an entry is taken: to
    ask for each of a million objects costs hours on a mount."""
    with os.scandir(folder) as entries:
        for entry in entries:
            linked = entry.is_symlink()
            if os.path.isdir(entry.path) if linked else entry.is_dir():
                real = os.path.realpath(entry.path)
                if real not in above:
                    yield from _entries(entry.path, f"{inside}{entry.name}/", {*above, real})
            else:
                yield inside + entry.name, os.path.isfile(entry.path) if linked else entry.is_file()


def _some(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


def for_each(keys: Iterable[str], act: Callable[[str], object]) -> None:
    """``act`` on every key; the first error is raised, and what has not begun by then is left out."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        begun = [pool.submit(act, key) for key in keys]
        try:
            for one in begun:
                one.result()
        finally:
            for one in begun:
                one.cancel()


def size_text(size: int) -> str:
    """``3.2 MiB``."""
    amount = float(size)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.3g} {unit}" if unit != "bytes" else f"{size} bytes"
        amount /= 1024
    return f"{amount:.4g} TiB"
