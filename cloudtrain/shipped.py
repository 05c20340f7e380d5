"""Where the files that ship beside the package lie: in a wheel inside it, in a checkout next to it."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def entrypoints() -> Path:
    """Folder of ``launch.py``, ``train_ddp.py`` and ``cloudtrain_job``: what travels with every job."""
    return _folder("entrypoints")


def templates() -> Path:
    """Folder of the starting points for ``cloudtrain init``."""
    return _folder("templates")


def _folder(name: str) -> Path:
    carried = _PACKAGE / "_shipped" / name
    return carried if carried.is_dir() else _PACKAGE.parent / name
