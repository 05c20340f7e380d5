"""The region of a request. CreateTrainingJob has no field for it: the client's endpoint decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloudtrain.providers.sagemaker.environment import REGION


def region_of(native: Mapping[str, Any]) -> str:
    """As our own variable says it, which no override can take away."""
    return str(native["Environment"][REGION])
