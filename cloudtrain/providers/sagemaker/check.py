"""What the service would refuse in a request, found offline: botocore's model, and the rules that it does not hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloudtrain.providers.base import NativeCheck
from cloudtrain.providers.registry import EXTRAS
from cloudtrain.providers.sagemaker import rules, schema
from cloudtrain.providers.vendor import skipped


def check(native: Mapping[str, Any]) -> NativeCheck:
    """All problems; without botocore those of our own rules."""
    ours = list(rules.problems(native))
    try:
        modelled = list(schema.problems(native))
    except ImportError as error:
        return NativeCheck(tuple(ours), skipped(error, "botocore", "the service's own model", EXTRAS["sagemaker"]))
    return NativeCheck(tuple(dict.fromkeys([*modelled, *ours])))
