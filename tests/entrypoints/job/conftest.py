from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.entrypoints.job.ranks import Ranks


@pytest.fixture(scope="session")
def ranks() -> Iterator[Ranks]:
    """Starts jobs of real processes."""
    server = Ranks()
    yield server
    server.close()
