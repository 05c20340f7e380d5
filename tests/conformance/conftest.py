"""One emulator for all the tests of this folder, and the backends that have to behave alike."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cloudtrain.emulator import Emulator
from tests.conformance.backend import CLOUDS, Backend, Digits
from tests.plugins.packages import TheirCloud, ToyCloud, install_toy

THEIRS = os.environ.get("CLOUDTRAIN_TEST_PROVIDERS", "").split()
"""Providers of packages that are installed here, to be held against the same tests: see docs/providers.md."""


@pytest.fixture(scope="package")
def emulator() -> Iterator[Emulator]:
    with Emulator(CLOUDS) as opened:
        yield opened


@pytest.fixture(scope="package")
def toy(tmp_path_factory: pytest.TempPathFactory) -> ToyCloud:
    """A provider of another package, with a cloud of its own."""
    return ToyCloud(install_toy(tmp_path_factory.mktemp("site")), tmp_path_factory.mktemp("cloud"))


@pytest.fixture(scope="package", params=dict.fromkeys(["local", *CLOUDS, "toy", *THEIRS]))
def backend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Backend:
    cloud: Any = TheirCloud()
    if request.param not in THEIRS:
        cloud = request.getfixturevalue("toy" if request.param == "toy" else "emulator")
    return Backend(request.param, cloud, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="package")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Digits:
    """What `cloudtrain run` makes of the job, which involves neither the ledger nor a port."""
    return Digits.run_here(tmp_path_factory.mktemp("reference"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path
