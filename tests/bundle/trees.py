"""Trees of files for tests, and git as the judge of what is ignored."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path


def plant(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Writes ``files`` (path -> content) below ``root``, which is made if need be."""
    root.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def later() -> int:
    """A clock that is a minute ahead, so that files written just now count as old."""
    return time.time_ns() + 60 * 10**9


def git(root: Path, *args: str) -> bytes:
    """Output of a git that reads no configuration of this machine."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    hermetic = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "HOME": str(root)}
    hermetic["XDG_CONFIG_HOME"] = str(root / "no-such-folder")
    done = subprocess.run(["git", *args], cwd=root, env=clean | hermetic, check=True, capture_output=True)
    return done.stdout


def start_repository(root: Path) -> Path:
    """An empty repository that is nobody's but ours: no templates, so no excludes of the machine."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "--template=")
    return root


def git_says(root: Path, *rules: str) -> list[str]:
    """The untracked files below ``root`` that git does not ignore, in git's order (by bytes)."""
    chosen = rules or ("--exclude-per-directory=.gitignore",)
    listed = git(root, "ls-files", "--others", "-z", *chosen).split(b"\0")
    return [os.fsdecode(path) for path in listed if path]


def clear(root: Path) -> None:
    """Empties a folder but for its ``.git``."""
    for entry in root.iterdir():
        if entry.name != ".git":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
