"""What Vertex AI would refuse in a CustomJob, as far as it can be known without asking it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloudtrain.providers.base import NativeCheck
from cloudtrain.providers.registry import EXTRAS
from cloudtrain.providers.vertex import rules
from cloudtrain.providers.vertex.schema import schema_problems


def check(native: Mapping[str, Any]) -> NativeCheck:
    """The vendor's message types first, then the rules that they do not hold; one problem for each place."""
    ruled = rules.problems(native)
    try:
        typed = schema_problems(native)
    except ImportError:
        skipped = f"field names and types were not checked: google-cloud-aiplatform is missing; {EXTRAS['vertex']}"
        return NativeCheck(tuple(ruled), skipped)
    known = {problem.path for problem in typed}
    return NativeCheck((*typed, *(problem for problem in ruled if problem.path not in known)))
