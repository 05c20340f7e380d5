"""Commands whose output nobody reads, whose disk is full, or that are told to end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

MAIN = "from cloudtrain.cli import main; main()"
COMMANDS = [["catalog", "--help"], ["--version"], ["schema"], ["runs", "--json"], ["--help"]]


def _run(args: list[str], out: int, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MAIN, *args],
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


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no such signal")
@pytest.mark.parametrize("number", [15, 1])
def test_a_command_that_is_told_to_end_does_so_in_order(number: int, tmp_path: Path) -> None:
    """-15 would be an end in which nothing temporary is removed."""
    pytest.importorskip("boto3")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        env = {
            **os.environ, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{silent.getsockname()[1]}", "NO_PROXY": "127.0.0.1",
            "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "CLOUDTRAIN_HOME": str(tmp_path / "home"),
            "CLOUDTRAIN_SAGEMAKER_REGION": "eu-west-1",
        }  # fmt: skip
        command = [sys.executable, "-c", MAIN, "status", "sagemaker:some-job"]
        with subprocess.Popen(command, env=env, cwd=tmp_path, stderr=subprocess.PIPE) as process:
            silent.settimeout(60)
            asked, _ = silent.accept()
            process.send_signal(number)
            said = process.communicate(timeout=60)[1]
        asked.close()
    assert (process.returncode, said) == (128 + number, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="a current folder cannot be removed there")
def test_a_current_folder_that_was_removed(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    command = (
        f"mkdir {gone}; cd {gone}; rmdir {gone}; exec {sys.executable} -c '{MAIN}' render job.yaml --provider vertex"
    )
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode in (2, 3) and "fault of cloudtrain" not in ended.stderr
