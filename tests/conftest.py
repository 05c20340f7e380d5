"""Options of the whole suite."""

from __future__ import annotations

from pathlib import Path

import pytest

# They start nodes and ranks of their own, which share the machine: one after the other. With ``pytest -n 2 --dist
# loadgroup`` all that only computes runs beside them.
_WITH_PROCESSES = ("local", "entrypoints", "emulator", "conformance", "runs", "test_wheel.py")
_TESTS = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.relative_to(_TESTS).parts[0] in _WITH_PROCESSES:
            item.add_marker(pytest.mark.xdist_group("processes"))
