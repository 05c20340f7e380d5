"""The process of a command. benchmarks/render.py measures what is saved; this says where it went, should it be lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cloudtrain import __version__
from tests.local.project import require

DOES_WITHOUT = {
    "ctypes", "email", "http", "importlib.metadata", "multiprocessing", "numpy", "pathspec", "platformdirs", "rich",
    "shutil", "socket", "ssl", "subprocess", "tarfile", "tempfile", "torch", "zipfile",
}  # fmt: skip


@pytest.mark.parametrize("provider", ["sagemaker", "vertex", "azureml"])
def test_a_render_loads_what_it_is_made_of_and_little_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setenv("CLOUDTRAIN_HOME", str(tmp_path / "home"))
    (tmp_path / "job.yaml").write_text("name: a\nentry: train.py\n", encoding="utf-8")
    (tmp_path / "train.py").touch()
    (tmp_path / ".gitignore").write_text("data/\n*.pt\n", encoding="utf-8")
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "cloudtrain", "render", "job.yaml", "--provider", provider],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    loaded = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines() if "import time:" in line}
    assert {"annotated_types", "cloudtrain.bundle.walk", "cloudtrain.catalog.instances"} <= loaded
    assert not loaded & DOES_WITHOUT


ENDING = """
import atexit, sys, threading, time
from cloudtrain.__main__ import command
atexit.register(print, "at the end")
{before}
sys.argv = ["cloudtrain", *sys.argv[1:]]
command()
"""
LATE = 'threading.Thread(target=lambda: (time.sleep(0.5), print("late"))).start()'


@pytest.mark.parametrize(
    ("before", "arguments", "code", "out"),
    [
        ("", ["--version"], 0, [f"cloudtrain {__version__}", "at the end"]),
        ("", ["validate", "nothing.yaml"], 2, ["at the end"]),
        (LATE, ["--version"], 0, [f"cloudtrain {__version__}", "late", "at the end"]),
    ],
)
def test_a_command_ends_as_every_process_does(before: str, arguments: list[str], code: int, out: list[str]) -> None:
    program = [sys.executable, "-c", ENDING.format(before=before), *arguments]
    result = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stdout.splitlines()) == (code, out)


def test_a_stream_that_was_closed_is_no_fault() -> None:
    program = ENDING.replace('print, "at the end"', "sys.stdout.close").format(before="")
    result = subprocess.run(
        [sys.executable, "-c", program, "--version"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, f"cloudtrain {__version__}\n", "")


def test_a_pydantic_that_asks_more_of_its_loader_of_plugins_gets_it() -> None:
    program = """
from cloudtrain.__main__ import _without_plugins
_without_plugins()
from pydantic.plugin._loader import get_plugins
assert get_plugins() == ()
from pydantic.plugin._loader import PYDANTIC_ENTRY_POINT_GROUP
print(PYDANTIC_ENTRY_POINT_GROUP)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (result.stdout, result.stderr) == ("pydantic\n", "")


def test_output_that_cannot_be_written_does_not_go_unnoticed(monkeypatch: pytest.MonkeyPatch) -> None:
    require(Path("/dev/full").exists(), "needs /dev/full")
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    program = [sys.executable, "-c", ENDING.format(before="sys.stdout.write('lost')"), "validate", "nothing.yaml"]
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert result.returncode == 120  # as Python has it
    assert b"No space left" in result.stderr
