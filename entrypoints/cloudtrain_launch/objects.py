"""A folder as an object store has it: keys in the store's order, copied a few at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Callable

_AT_ONCE = 8
"""An object store answers slowly and in parallel."""


def keys(folder: str) -> list[str]:
    """The files below ``folder`` as keys relative to it, sorted as stores sort: by their UTF-8 bytes."""
    found = []
    for path, _, names in os.walk(folder, onerror=_complain, followlinks=True):
        inside = os.path.relpath(path, folder)
        found += [os.path.normpath(os.path.join(inside, name)) for name in names]
    return sorted((key for key in found if os.path.isfile(os.path.join(folder, key))), key=os.fsencode)


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
