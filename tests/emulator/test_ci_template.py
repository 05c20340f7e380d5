"""The workflow of the template `ci`, as a user's CI runs it: every `run:` step in plain shell, in a new project."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cloudtrain import shipped
from tests.local.project import CLOUDTRAIN

WORKFLOW = Path(".github", "workflows", "cloudtrain.yml")
LIMIT_SECONDS = 900
"""Bound on one step; nothing is asserted about how long it really takes."""


def _steps() -> list[dict[str, Any]]:
    workflow = yaml.safe_load((shipped.templates() / "ci" / WORKFLOW).read_text("utf-8"))
    (job,) = workflow["jobs"].values()
    steps: list[dict[str, Any]] = job["steps"]
    return steps


def test_the_workflow_is_well_formed() -> None:
    workflow = yaml.safe_load((shipped.templates() / "ci" / WORKFLOW).read_text("utf-8"))
    assert workflow[True] == ["push", "pull_request"]  # YAML 1.1 reads `on` so, GitHub does not
    assert all(("uses" in step) != ("run" in step) for step in _steps())
    assert all(step.get("name") for step in _steps() if "run" in step)
    installed = [step["run"] for step in _steps() if step.get("name", "").startswith("Install")]
    assert installed == ["pip install 'cloudtrain[all]'", "npm install --global azurite@3.35.0"]


def test_every_step_but_those_that_install_runs_as_it_stands(tmp_path: Path) -> None:
    project = tmp_path / "project"
    env = {
        **os.environ,
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "CLOUDTRAIN_HOME": str(tmp_path / "home"),
    }
    subprocess.run([CLOUDTRAIN, "init", "--template", "ci", str(project)], check=True, capture_output=True)
    assert (project / WORKFLOW).is_file()
    job = project / "job.yaml"
    block, inline = "args:\n  epochs: 20\n  lr: 0.05\n", "args: {epochs: 20, lr: 0.05}\n"
    job.write_text(job.read_text("utf-8").replace(block, inline))
    assert inline in job.read_text("utf-8")
    said = {}
    for step in _steps():
        name = step.get("name", "")
        if "run" in step and not name.startswith("Install"):
            said[name] = _run(step["run"], project, env)
    assert len(said) == 6
    trained = said["It trains on the emulated clouds"]
    assert trained.count("[0/0] epoch 1/1 ") == 3
    assert said["The models are there"].count("model.pt") == 3


def _run(script: str, folder: Path, env: dict[str, str]) -> str:
    """As GitHub's runners do on Linux."""
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT_SECONDS,
        check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.fail(f"{script}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
