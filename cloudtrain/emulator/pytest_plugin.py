"""For users' own tests: the fixture ``cloudtrain_emulator``, clouds on this machine for the time of one test.

    @pytest.mark.cloudtrain_emulator(providers=["vertex"], faults="faults.yaml")
    def test_pipeline(cloudtrain_emulator):
        subprocess.run([sys.executable, "pipeline.py"], check=True)        # os.environ leads to the emulator
        assert cloudtrain_emulator.plane("vertex").requests[0]["displayName"] == "digits"

pytest loads this module wherever cloudtrain is installed, so it imports nothing that is not needed for that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cloudtrain.emulator import Emulator

_MARKER = "cloudtrain_emulator"


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    what = "what the fixture of the same name emulates, and how"
    config.addinivalue_line("markers", f"{_MARKER}(providers, speed, faults, isolation): {what}")


@pytest.fixture
def cloudtrain_emulator(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """The emulator; this process's environment leads to it, and to no real account, until the test's end."""
    from cloudtrain.emulator import Emulator

    marker = request.node.get_closest_marker(_MARKER)
    options = dict(marker.kwargs) if marker else {}
    if isinstance(options.get("faults"), str):
        options["faults"] = Path(request.path.parent, options["faults"])
    with Emulator(*(marker.args if marker else ()), **options) as emulator:
        environment = emulator.environment()
        for name in set(os.environ) - set(environment):
            monkeypatch.delenv(name)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield emulator
