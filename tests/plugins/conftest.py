"""The toy, installed once."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from tests.conformance.backend import Backend
from tests.plugins.packages import ToyCloud, install_toy


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_toy(tmp_path_factory.mktemp("site"))


@pytest.fixture
def toy(site: Path, tmp_path: Path) -> Backend:
    return Backend("toy", cast("Any", ToyCloud(site, tmp_path / "cloud")), tmp_path)
