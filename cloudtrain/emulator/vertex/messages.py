"""CustomJobs as JSON and as protobuf, through the vendor's own message types.

Kept is the canonical JSON form: camelCase names, enums by name, an int64 as text, nothing that has its default value.
Clients may send any form that protobuf's JSON reader takes, and get the one they ask for (``$alt``).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from cloudtrain.emulator.vertex.errors import ServiceError
from cloudtrain.providers.vertex.schema import custom_job_type

UNKNOWN_NUMBER = 99
"""Sent for a state that has a name alone, where numbers are asked for."""


def canonical(body: Any) -> dict[str, Any]:
    """A CustomJob that was received as JSON. Raises ServiceError for what no message has."""
    from google.protobuf import json_format

    if not isinstance(body, Mapping):
        raise ServiceError("INVALID_ARGUMENT", "Invalid JSON payload received. Expected an object.")
    try:
        message = json_format.ParseDict(body, custom_job_type()(), ignore_unknown_fields=False)
    except (json_format.ParseError, TypeError, ValueError, AttributeError) as error:
        raise ServiceError("INVALID_ARGUMENT", f"Invalid JSON payload received. {error}") from error
    return as_json(message)


def as_json(message: Any, *, integers: bool = False) -> dict[str, Any]:
    """Any message as JSON; ``integers``: enums by their numbers."""
    from google.protobuf import json_format

    found: dict[str, Any] = json_format.MessageToDict(message, use_integers_for_enums=integers)
    return found


def as_message(resource: Mapping[str, Any]) -> Any:
    """A CustomJob of ours as protobuf. A state without a number becomes ``UNKNOWN_NUMBER``."""
    from google.protobuf import json_format

    kind = custom_job_type()
    states = kind.DESCRIPTOR.fields_by_name["state"].enum_type.values_by_name
    known = {**resource, "state": resource["state"] if resource["state"] in states else UNKNOWN_NUMBER}
    return json_format.ParseDict(known, kind())


def rendered(resource: Mapping[str, Any], *, integers: bool) -> dict[str, Any]:
    """A CustomJob of ours as it is answered."""
    if not integers:
        return copy.deepcopy(dict(resource))
    message = as_message(resource)
    return as_json(message, integers=True)
