"""What a render does not load. benchmarks/render.py measures the time saved; this says where it went, should it go."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DOES_WITHOUT = {
    "ctypes", "email", "http", "importlib.metadata", "multiprocessing", "numpy", "pathspec", "platformdirs", "rich",
    "shutil", "socket", "ssl", "subprocess", "tarfile", "tempfile", "torch", "zipfile",
}  # fmt: skip

PROGRAM = """
import sys
from cloudtrain.cli import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize("provider", ["sagemaker", "vertex", "azureml"])
def test_a_render_loads_what_it_is_made_of_and_little_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setenv("CLOUDTRAIN_HOME", str(tmp_path / "home"))
    (tmp_path / "job.yaml").write_text("name: a\nentry: train.py\n", encoding="utf-8")
    (tmp_path / "train.py").touch()
    (tmp_path / ".gitignore").write_text("data/\n*.pt\n", encoding="utf-8")
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, "render", "job.yaml", "--provider", provider, "--quiet"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    loaded = set(result.stderr.split())
    assert {"pydantic.main", "cloudtrain.bundle.walk", f"cloudtrain.providers.{provider}.translate"} <= loaded
    assert not loaded & DOES_WITHOUT
