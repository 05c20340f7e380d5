"""A server per test, and no proxy that requests to it could go through."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.entrypoints.prepare.server import Server, serving


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    with serving() as server:
        yield server
