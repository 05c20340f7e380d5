"""Packages that bring a provider: the toy, installed as any package is, and ones made up on the spot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

TOY = Path(__file__).with_name("toy")
POLL_SECONDS = "0.2"


def install_toy(folder: Path) -> Path:
    """Where pip has put it."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index",
         "--no-build-isolation", "--target", str(folder), str(TOY)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def package(site: Path, provider: str, source: str, *, name: str = "bad-cloud", module: str = "bad_cloud") -> None:
    """As if it were installed in ``site``: a package of one module that brings ``provider``."""
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[cloudtrain.providers]\n{provider} = {module}\n")
    (site / f"{module}.py").write_text(source)


def environment(site: Path, **further: str) -> dict[str, str]:
    """Of a shell in which the packages of ``site`` are installed."""
    paths = os.pathsep.join(path for path in (str(site), os.environ.get("PYTHONPATH", "")) if path)
    return {**os.environ, "PYTHONPATH": paths, **further}


class ToyCloud:
    """What the tests of all providers ask of the emulator, for the toy's own cloud."""

    def __init__(self, site: Path, folder: Path) -> None:
        self._site, self._folder = site, folder

    def environment(self) -> dict[str, str]:
        """The variables with which commands find it."""
        toy = {"CLOUDTRAIN_TOY_FOLDER": str(self._folder), "CLOUDTRAIN_POLL_SECONDS": POLL_SECONDS}
        return environment(self._site, **toy)

    def plane(self, _: str) -> ToyCloud:
        return self

    @property
    def requests(self) -> list[dict[str, Any]]:
        """As they were received."""
        return [json.loads(file.read_text())["native"] for file in sorted(self._folder.glob("jobs/*/job.json"))]


class TheirCloud:
    """A real one, of a package that is installed here: its settings are variables of the shell."""

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def plane(self, provider: str) -> NoReturn:
        pytest.skip(f"what {provider} has received is its own")
