"""What docs/emulate.md shows: its programs on the vendors' SDKs, its fault files and its test are run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cloudtrain.emulator.callnames import CALLS
from cloudtrain.emulator.faults import Faults
from tests.local.project import CLOUDTRAIN

PAGE = (Path(__file__).parents[2] / "docs" / "emulate.md").read_text("utf-8")
LIMIT_SECONDS = 600
SUBMITS = (
    "for cloud in sagemaker vertex azureml; do cloudtrain submit job.yaml --provider $cloud --follow --quiet; done"
)
SHOWN = {
    "import boto3": r"plain-\w+-a1 Completed\n",
    "import aiplatform": r"plain-\w+-a1 JOB_STATE_SUCCEEDED\n",
    "JobServiceClient": r"plain-\w+-a1 JOB_STATE_SUCCEEDED\n",
    "import logging": r"(.*\n)*\[0/0\] there is nothing to do\n(.*\n)*",
    "import storage": r"(cloudtrain/.*\n)+",
    "MLClient": r"plain-\w+-a1 JobStatus.COMPLETED\n",
}
"""What a program has in it -> all that it prints."""


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "job.yaml").write_text("name: plain\nentry: train.py\n")
    (tmp_path / "train.py").write_text("print('there is nothing to do')\n")
    monkeypatch.setenv("PATH", os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _done(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_programs_see_the_jobs(project: Path) -> None:
    programs = [block for block in _blocks("python") if "def test_" not in block]
    lines = ["set -e", SUBMITS]
    for number, program in enumerate(programs):
        (project / f"program{number}.py").write_text(program)
        lines.append(f"python program{number}.py > said{number}")
    _done(CLOUDTRAIN, "emulate", "--", "sh", "-c", "\n".join(lines))
    patterns = [next(shown for mark, shown in SHOWN.items() if mark in program) for program in programs]
    assert len(patterns) == len(SHOWN)
    for number, pattern in enumerate(patterns):
        said = (project / f"said{number}").read_text()
        assert re.fullmatch(pattern, said), said


def test_the_test_passes(project: Path) -> None:
    (test,) = (block for block in _blocks("python") if "def test_" in block)
    (project / "test_plain.py").write_text(test)
    (faults,) = re.findall(r"^`faults\.yaml` says `(.*)`:$", PAGE, re.MULTILINE)
    (project / "faults.yaml").write_text(faults)
    assert "1 passed" in _done(sys.executable, "-m", "pytest", "-q", "--strict-markers", "test_plain.py")


def test_the_fault_files_may_be_written_so(tmp_path: Path) -> None:
    files = _blocks("yaml")
    assert len(files) == 3
    for text in files:
        (tmp_path / "faults.yaml").write_text(text)
        assert Faults.load(tmp_path / "faults.yaml").unused()


def test_all_calls_are_listed() -> None:
    rows = dict(re.findall(r"^\| (sagemaker|vertex|azureml) \| (.*) \|$", PAGE, re.MULTILINE))
    assert {cloud: tuple(re.findall(r"`(\w+)`", row)) for cloud, row in rows.items()} == CALLS
