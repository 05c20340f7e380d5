"""Nodes of the emulator in a temporary folder that is looked at afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from cloudtrain.emulator.base import NodePlan
from cloudtrain.emulator.keeper import Keeper
from cloudtrain.emulator.nodes import Nodes
from cloudtrain.providers.local.options import Isolation

Start = Callable[..., Nodes]


@pytest.fixture(scope="package")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keeper]:
    """Has torch loaded, once for all tests."""
    folder = tmp_path_factory.mktemp("keeper")
    keeper = Keeper(folder)
    keeper.warm()
    yield keeper
    keeper.close()
    assert not folder.exists()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """What stands for /tmp, but for pytest itself, which has its folder: empty at first, and to be empty at the end."""
    assert tmp_path
    with tempfile.TemporaryDirectory(prefix="ct-", dir="/tmp") as short:
        monkeypatch.setenv("TMPDIR", short)
        monkeypatch.setattr(tempfile, "tempdir", None)
        yield Path(short)
        assert list(Path(short).iterdir()) == []


@pytest.fixture
def start(keeper: Keeper, temporary: Path) -> Iterator[Start]:
    """``start(plans, isolation)``: nodes, closed at the test's end; no process and no file of theirs may be left."""
    started: list[Nodes] = []

    def start(plans: Sequence[NodePlan], isolation: Isolation = "auto") -> Nodes:
        started.append(Nodes(plans, isolation, keeper.launch))
        return started[-1]

    yield start
    for nodes in started:
        nodes.close()
    left = [pid for nodes in started for pid in nodes.pids if psutil.pid_exists(pid)]
    assert [psutil.Process(pid).cmdline() for pid in left] == []
    assert list(temporary.iterdir()) == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """For a job's files."""
    return tmp_path
