"""Where cloudtrain keeps what outlives a project: the folder named by ``CLOUDTRAIN_HOME``, else the user's data folder.

Nothing in it is ever shared with other users: every folder made here may be entered by its owner only.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from cloudtrain.errors import MissingError

_OWNER_ONLY = 0o700


def home() -> Path:
    """The home folder, absolute; it need not exist yet. An empty ``CLOUDTRAIN_HOME`` counts as not set."""
    named = os.environ.get("CLOUDTRAIN_HOME")
    if named:
        return Path(named).expanduser().absolute()
    if sys.platform == "linux" and "HOME" in os.environ and "XDG_DATA_HOME" not in os.environ:
        return Path("~/.local/share/cloudtrain").expanduser()  # the usual case, without 4 ms for loading platformdirs
    import platformdirs

    return platformdirs.user_data_path("cloudtrain", appauthor=False)


def home_folder(*parts: str) -> Path:
    """``home()/parts...``, made if need be with access for its owner only. Raises MissingError if it cannot be made."""
    base = home()
    try:
        base.parent.mkdir(parents=True, exist_ok=True)
        folder = base
        _make(base)
        for part in parts:
            folder = folder / part
            folder.mkdir(mode=_OWNER_ONLY, exist_ok=True)
    except OSError as error:
        raise MissingError(
            f"cannot make {error.filename or base}: {error.strerror}",
            hint="Set CLOUDTRAIN_HOME to a folder that can be written.",
        ) from error
    return folder


def _make(base: Path) -> None:
    """A home inside a project is no part of its code: neither git nor a bundle takes it."""
    try:
        base.mkdir(mode=_OWNER_ONLY)
    except FileExistsError:
        if not base.is_dir():
            raise
    else:
        (base / ".gitignore").write_text("*\n", encoding="utf-8")
