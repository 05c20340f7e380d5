"""A job on a cloud per test; afterwards no process of it and no temporary folder may be left."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.entrypoints.clouds.nodes import CloudJob
from tests.local.project import Project

Make = Callable[..., CloudJob]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """``make(provider, count=2)`` gives the test's job."""
    jobs: list[CloudJob] = []

    def make(provider: str, **more: Any) -> CloudJob:
        jobs.append(CloudJob(Project(tmp_path), provider=provider, **more))
        return jobs[-1]

    with tempfile.TemporaryDirectory(prefix="ct-", dir="/tmp") as short:
        monkeypatch.setenv("TMPDIR", short)
        try:
            yield make
            assert [job.project.left_over() for job in jobs if job.project.left_over()] == []
            assert [path.name for path in Path(short).glob("cloudtrain*")] == []
        finally:
            for job in jobs:
                job.project.kill_left_over()
                job.stop()
