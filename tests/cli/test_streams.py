"""Commands whose output nobody reads, or whose disk is full."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = [["catalog", "--help"], ["--version"], ["schema"], ["runs", "--json"], ["--help"]]


def _run(args: list[str], out: int, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from cloudtrain.cli import main; main()", *args],
        stdout=out, stderr=subprocess.PIPE, text=True, timeout=120, check=False, cwd=tmp_path,
    )  # fmt: skip


@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
def test_a_reader_that_has_gone(args: list[str], tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        ended = _run(args, write, tmp_path)
    finally:
        os.close(write)
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
def test_a_disk_that_is_full(args: list[str], tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        ended = _run(args, full.fileno(), tmp_path)
    assert ended.returncode == 3
    assert ended.stderr.startswith("cloudtrain: No space left on device\n")
