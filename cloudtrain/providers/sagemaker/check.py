"""What the service would refuse in a request, found offline: botocore's model, and the rules that it does not hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloudtrain.providers.base import NativeCheck
from cloudtrain.providers.registry import EXTRAS
from cloudtrain.providers.sagemaker import rules, schema


def check(native: Mapping[str, Any]) -> NativeCheck:
    """All problems; without botocore those of our own rules."""
    ours = list(rules.problems(native))
    try:
        modelled = list(schema.problems(native))
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "botocore":
            raise
        skipped = f"not checked against the service's own model, which botocore holds: {EXTRAS['sagemaker']}"
        return NativeCheck(tuple(ours), skipped)
    return NativeCheck(tuple(dict.fromkeys([*modelled, *ours])))
