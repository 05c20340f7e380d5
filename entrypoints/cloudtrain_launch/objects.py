"""A folder as an object store has it: keys in the store's order, copied a few at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable
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
    found = []
    for path, folders, names in os.walk(folder, onerror=_complain, followlinks=True):
        inside = os.path.relpath(path, folder)
        folders[:] = [name for name in folders if not _leads_up(os.path.join(path, name), folder)]
        found += [os.path.normpath(os.path.join(inside, name)) for name in names]
    files = {key for key in found if os.path.isfile(os.path.join(folder, key))}
    if label and len(files) < len(found):
        print(f"{label}: left out, since they are no files: {_some(sorted(set(found) - files))}", flush=True)
    return sorted(files, key=os.fsencode)


def _leads_up(path: str, top: str) -> bool:
    """Whether ``path`` is a link to one of the folders above it, which would be walked for ever."""
    if not os.path.islink(path):
        return False
    target, above = os.path.realpath(path), os.path.dirname(path)
    while os.path.realpath(above) != target and len(above) > len(top):
        above = os.path.dirname(above)
    return os.path.realpath(above) == target


def _some(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


def _complain(error: OSError) -> None:
    raise error


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
