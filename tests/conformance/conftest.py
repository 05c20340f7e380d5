"""One emulator for all the tests of this folder, and the backends that have to behave alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cloudtrain.emulator import Emulator
from tests.conformance.backend import CLOUDS, Backend, Digits


@pytest.fixture(scope="package")
def emulator() -> Iterator[Emulator]:
    with Emulator(CLOUDS) as opened:
        yield opened


@pytest.fixture(scope="package", params=["local", *CLOUDS])
def backend(request: pytest.FixtureRequest, emulator: Emulator, tmp_path_factory: pytest.TempPathFactory) -> Backend:
    return Backend(request.param, emulator, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="package")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Digits:
    """What `cloudtrain run` makes of the job, which involves neither the ledger nor a port."""
    return Digits.run_here(tmp_path_factory.mktemp("reference"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path
