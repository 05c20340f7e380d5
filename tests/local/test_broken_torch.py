"""A torch that is there and cannot be loaded: something is missing here, and it is no fault of the job, nor of ours."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.local.project import Project

IMPORTS = {
    "a library is missing": ("raise ImportError('libcudart.so.12: cannot open')", "ImportError: libcudart.so.12"),
    "another version of it": ("raise RuntimeError('operator does not exist')", "RuntimeError: operator does not exist"),
    "for another processor": ("import os; os.kill(os.getpid(), 4)", "Python ends with status -4"),
}


@pytest.mark.parametrize("engine", ["fork", "agents"])
@pytest.mark.parametrize("what", IMPORTS)
def test_it_is_named(project: Project, tmp_path_factory: pytest.TempPathFactory, what: str, engine: str) -> None:
    code, message = IMPORTS[what]
    project.job(nodes=1, processes=1)
    result = project.run("--isolation", "none", "--engine", engine, env=broken(tmp_path_factory.mktemp("site"), code))
    assert result.code == 3, result.err
    assert f": {message}" in result.err.partition("torch cannot be loaded by ")[2]
    assert "python -c 'import torch'" in result.err
    state = json.loads((project.latest / "run.json").read_text())
    assert (state["state"], state["exit_code"]) == ("FAILED", 3)
    assert message in state["reason"]


def broken(site: Path, code: str) -> dict[str, str]:
    """Variables by which Python finds a torch that does this when it is imported."""
    (site / "torch").mkdir()
    (site / "torch" / "__init__.py").write_text(code)
    return {"PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}
