"""The wheel works outside the checkout: it carries the launcher, the templates and cloudtrain_job."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_what_it_carries(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    tracked = subprocess.check_output(["git", "ls-files", "entrypoints", "templates"], cwd=ROOT, text=True).split()
    assert {f"cloudtrain/_shipped/{name}" for name in tracked} == {
        name for name in names if name.startswith("cloudtrain/_shipped/")
    }
    job = {name.removeprefix("entrypoints/") for name in tracked if name.startswith("entrypoints/cloudtrain_job/")}
    assert job == {name for name in names if name.startswith("cloudtrain_job/")}
    assert "cloudtrain/py.typed" in names
    assert not [name for name in names if name.startswith(("tests", "benchmarks")) or "__pycache__" in name]


def test_it_trains_from_another_folder(wheel: Path, tmp_path: Path) -> None:
    target, work = tmp_path / "site", tmp_path / "work"
    work.mkdir()
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(target),
        str(wheel),
    ]
    subprocess.run(pip, check=True, capture_output=True)
    env = {**os.environ, "PYTHONPATH": str(target), "CLOUDTRAIN_HOME": str(tmp_path / "home")}

    def run(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command], cwd=work, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = run("-c", "import cloudtrain, cloudtrain_job; print(cloudtrain.__file__, cloudtrain_job.__file__)").split()
    assert all(Path(path).is_relative_to(target) for path in where)
    run("-m", "cloudtrain", "init", "--template", "script", "job")
    assert "[0/0]" in run("-m", "cloudtrain", "run", "job/job.yaml", "--processes", "1", "--", "--epochs", "1")
