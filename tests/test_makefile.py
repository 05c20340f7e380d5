"""``make``, as far as it can be tried without installing anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cloudtrain import shipped

ROOT = shipped.templates().parent


@pytest.mark.parametrize(("version", "said"), [("3, 9, 18", "is 3.9:"), ("3, 14, 0", "is 3.14:")])
def test_a_python_that_does_not_do_is_refused_before_anything_is_made(tmp_path: Path, version: str, said: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"import sys; sys.version_info = ({version}, 'final', 0)\n")
    done = subprocess.run(
        ["make", "demo", f"PYTHON={sys.executable}", f"VENV={tmp_path / 'venv'}", f"DEMO={tmp_path / 'demo'}"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("cloudtrain needs Python 3.10 to 3.13, and ")
    assert said in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["sitecustomize.py"]
