"""What Azure ML would refuse, drop or misread in a command job form: found without the vendor's package.

    fields       what the form does not have, or has and ignores
    values       the limit, the alphabet and the words of each field
    environment  the same for the image and the variables
    places       the same for inputs and outputs
    relations    what fields say together

Overrides may have put anything anywhere, so no field is taken to have its right type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloudtrain.providers.azureml.rules import environment, fields, places, relations, values
from cloudtrain.providers.base import NativeProblem


def problems(native: Mapping[str, Any]) -> tuple[NativeProblem, ...]:
    """All of them."""
    kinds = (fields, values, environment, places, relations)
    return tuple(found for rules in kinds for found in rules.problems(native))
