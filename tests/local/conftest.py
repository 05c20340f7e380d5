"""A project per test, and the promise of every test here: afterwards no process and no folder of the run is left."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.project import Project, require


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    # Ours alone, and short, so that what a run leaves in its temporary folder is seen.
    with tempfile.TemporaryDirectory(prefix="ct-", dir="/tmp") as short:
        monkeypatch.setenv("TMPDIR", short)
        monkeypatch.setenv("CLOUDTRAIN_HOME", str(tmp_path / "home"))
        (tmp_path / "p").mkdir()
        project = Project(tmp_path / "p")
        try:
            yield project
            assert project.left_over() == []
            # Importing some of torch leaves a cache folder; that is the script's doing.
            assert [path.name for path in Path(short).iterdir() if not path.name.startswith("torchinductor")] == []
        finally:
            project.kill_left_over()


@pytest.fixture
def small_disk(project: Project) -> Iterator[Path]:
    """The project's folder on a disk of 4 MiB."""
    require(os.geteuid() == 0, "only root may mount a small disk")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(project.folder)], check=True)
    try:
        yield project.folder
    finally:
        project.kill_left_over()
        subprocess.run(["umount", "--lazy", str(project.folder)], check=True)
