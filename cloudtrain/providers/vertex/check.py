"""What Vertex AI would refuse in a CustomJob, as far as it can be known without asking it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloudtrain.providers.base import NativeCheck
from cloudtrain.providers.registry import EXTRAS
from cloudtrain.providers.vendor import skipped
from cloudtrain.providers.vertex import rules
from cloudtrain.providers.vertex.schema import schema_problems


def check(native: Mapping[str, Any]) -> NativeCheck:
    """The vendor's message types first, then the rules that they do not hold; one problem for each place."""
    ruled = rules.problems(native)
    try:
        typed = schema_problems(native)
    except ImportError as error:
        return NativeCheck(
            tuple(ruled), skipped(error, "google-cloud-aiplatform", "its field names and types", EXTRAS["vertex"])
        )
    known = {problem.path for problem in typed}
    return NativeCheck((*typed, *(problem for problem in ruled if problem.path not in known)))
