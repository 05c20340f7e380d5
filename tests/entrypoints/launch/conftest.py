"""A job per test; afterwards no process of it and no temporary folder may be left."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.entrypoints.launch.nodes import Job
from tests.local.project import Project


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Job]:
    with tempfile.TemporaryDirectory(prefix="ct-", dir="/tmp") as short:
        monkeypatch.setenv("TMPDIR", short)
        job = Job(Project(tmp_path))
        try:
            yield job
            assert job.project.left_over() == []
            assert [path.name for path in Path(short).glob("cloudtrain*")] == []
        finally:
            job.project.kill_left_over()
            job.stop()
