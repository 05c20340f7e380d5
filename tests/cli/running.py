"""Runs the installed command as a user does: a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def cloudtrain(*args: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Exit code, stdout and stderr of one command."""
    return subprocess.run(
        [sys.executable, "-c", "from cloudtrain.cli import main; main()", *map(str, args)],
        cwd=cwd, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False,
    )  # fmt: skip
