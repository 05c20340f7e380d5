"""One plane for all tests here: azurite takes seconds to start. What happens to a job is in its name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.emulator.azureml.emulated import Emulated, emulated

FAULTS = """
jobs:
  - {name: "evicted-*", fault: preempt, at: 2s}
  - {name: "taken-*", fault: preempt-without-notice, at: 0.5s}
  - {name: "loses-*", fault: lose-node, node: 1, at: 0.5s}
  - {name: "odd-*", fault: unknown-state, state: Hibernating}
  - {name: "poor-*", fault: quota}
  - {name: "waits-*", fault: capacity}
  - {name: "imageless-*", fault: image-missing}
"""


@pytest.fixture(scope="package")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulated]:
    """Two minutes of the service's take half a second."""
    with emulated(tmp_path_factory.mktemp("azure"), speed=240, faults=FAULTS) as found:
        yield found
