"""Options of the whole suite."""

from __future__ import annotations

from pathlib import Path

import pytest

_ALONE = (
    ("runs", ("local", "runs", "test_wheel.py")),
    ("clouds", ("entrypoints", "emulator", "conformance")),
)
"""What starts nodes and ranks of its own, which share the machine: in each group one test after the other, and with
``pytest -n 2 --dist loadgroup`` never more than two. More at once take longer: ranks that wait for each other spin."""
_TESTS = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        place = item.path.relative_to(_TESTS)
        group = next((name for name, places in _ALONE if any(place.is_relative_to(each) for each in places)), None)
        if group:
            item.add_marker(pytest.mark.xdist_group(group))
