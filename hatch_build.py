"""Build hook: what a wheel carries beside the package.

A static ``force-include`` would do, were it not copied into editable installs as well, where the copies go stale.
"""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CARRIED = {
    "entrypoints": "cloudtrain/_shipped/entrypoints",
    "templates": "cloudtrain/_shipped/templates",
    # A second time at the top, so that editors and a plain `python train.py` can import it.
    "entrypoints/cloudtrain_job": "cloudtrain_job",
}


class CarryEntrypoints(BuildHookInterface):  # type: ignore[type-arg]
    """Adds ``CARRIED`` to wheels; editable installs find the same folders in the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            build_data["force_include"].update(CARRIED)
