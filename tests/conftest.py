"""Options of the whole suite."""

from __future__ import annotations

from pathlib import Path

import pytest

_ALONE = (
    ("runs", ("local", "runs", "test_wheel.py")),
    ("launcher", ("entrypoints",)),
    ("endings", ("conformance/test_endings.py",)),
    ("clouds", ("emulator", "conformance")),
)
"""What starts nodes and ranks of its own, which share the machine: in each of these groups one test after the other.
With ``pytest -n 4 --dist loadgroup`` the groups run side by side, for most of what they do is waiting, and beside them
all that only computes. The first that fits counts."""
_TESTS = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        place = item.path.relative_to(_TESTS)
        group = next((name for name, places in _ALONE if any(place.is_relative_to(each) for each in places)), None)
        if group:
            item.add_marker(pytest.mark.xdist_group(group))
