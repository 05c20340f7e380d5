"""Where in the job file a value for Vertex AI stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudtrain.spec.problems import Path


def own(path: Path, given: object) -> Path:
    """``path`` of a field whose value ``given`` is one for all providers, or a mapping with one for each."""
    return path if isinstance(given, str) else (*path, "vertex")
