"""The request held against the vendor's own message types, as strictly as they can be read.

google-cloud-aiplatform's protobuf parser has the last word on every value; the walk along the message descriptors gives
each refusal its path and the nearest name, and finds all of them where the parser stops at the first. It is stricter
than the parser in two points: names must be the JSON ones (``jobSpec``; beside it, ``job_spec`` would win or lose by
its place), and an enum's number must be one that has a name.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from cloudtrain.errors import did_you_mean
from cloudtrain.providers.base import NativeProblem
from cloudtrain.providers.vendor import importing
from cloudtrain.providers.vertex.scheduling import LONGEST
from cloudtrain.spec.problems import Path, shown

_LONGEST_REASON = 300
"""Of what the parser says: it repeats the value, however long."""
_MESSAGE, _ENUM = 11, 14
"""Types of fields, as protobuf numbers them."""
_JSON: Mapping[int | str, str] = {
    3: "a whole number",
    5: f"a whole number of at most {2**31 - 1}",
    8: "true or false",
    9: "text",
    "google.protobuf.Duration": f"seconds as text such as '3600s', at most '{LONGEST}s'",
}
"""Type -> how JSON has it."""


def custom_job_type() -> Any:
    """The protobuf class of CustomJob. Raises ImportError without the vendor's package."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Google's packages warn on import of Python versions near their end
        with importing():
            from google.cloud.aiplatform_v1.types.custom_job import CustomJob
    return CustomJob.pb()


def schema_problems(native: Mapping[str, Any], message: Any = None) -> list[NativeProblem]:
    """What the types refuse. ``message``: a protobuf class, CustomJob's if left out. Raises ImportError."""
    kind = message or custom_job_type()
    found = list(_walk(native, kind.DESCRIPTOR, ()))
    if not found and (reason := _refusal(native, kind)):
        found.append(NativeProblem((), reason))
    return found


def _walk(value: Any, descriptor: Any, path: Path) -> Iterator[NativeProblem]:
    """Problems of a message."""
    names = {field.json_name: field for field in descriptor.fields}
    if not isinstance(value, Mapping):
        wanted = ", ".join(names)
        yield NativeProblem(path, f"must be a mapping with the fields {wanted}, not {shown(value)}")
        return
    for key, item in value.items():
        if key in names:
            yield from _field(item, names[key], (*path, key))
        else:
            yield NativeProblem((*path, key), _unknown(str(key), descriptor, names), unknown=True)
    for choice in descriptor.oneofs:
        given = [field.json_name for field in choice.fields if field.json_name in value]
        if len(given) > 1:
            yield NativeProblem(path, f"has {' and '.join(given)}, of which exactly one may be given")


def _unknown(key: str, descriptor: Any, names: Mapping[str, Any]) -> str:
    json_name = next((name for name, field in names.items() if field.name == key), "")
    near = f", write {json_name!r}" if json_name else did_you_mean(key, names)
    return f"unknown field of {descriptor.name}{near or '; it has ' + ', '.join(names)}"


def _field(value: Any, field: Any, path: Path) -> Iterator[NativeProblem]:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        yield from _map(value, field.message_type, path)
    elif not _is_repeated(field):
        yield from _single(value, field, path)
    elif not isinstance(value, (list, tuple)):
        yield NativeProblem(path, f"must be a list, not {shown(value)}")
    else:
        for number, item in enumerate(value):
            yield from _single(item, field, (*path, number))


def _map(value: Any, entry: Any, path: Path) -> Iterator[NativeProblem]:
    if not isinstance(value, Mapping):
        yield NativeProblem(path, f"must be a mapping, not {shown(value)}")
        return
    for key, item in value.items():
        yield from _single(item, entry.fields_by_name["value"], (*path, key))


def _single(value: Any, field: Any, path: Path) -> Iterator[NativeProblem]:
    """Problems of one value of a field."""
    if value is None:
        yield NativeProblem(path, "is null; leave it out")
    elif field.type == _MESSAGE and not _is_scalar_in_json(field.message_type):
        yield from _walk(value, field.message_type, path)
    elif reason := _value_refusal(value, field):
        yield NativeProblem(path, reason)


def _is_repeated(field: Any) -> bool:
    """protobuf 6.31 has a property for it; before that it was one of three labels."""
    return bool(field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED)


def _is_scalar_in_json(descriptor: Any) -> bool:
    """Messages such as Duration, which JSON has as text."""
    return str(descriptor.full_name).startswith("google.protobuf.")


def _value_refusal(value: Any, field: Any) -> str:
    repeated = _is_repeated(field)
    reason = _refusal({field.json_name: [value] if repeated else value}, _class_of(field.containing_type))
    if field.type == _ENUM:
        names = field.enum_type.values_by_name
        if not reason and (isinstance(value, str) or value in field.enum_type.values_by_number):
            return ""
        return f"{shown(value)} is none of {field.enum_type.name}{did_you_mean(str(value), names) or _listed(names)}"
    if not reason:
        return ""
    kind = field.message_type.full_name if field.message_type else field.type
    return f"must be {_JSON[kind]}, not {shown(value)}" if kind in _JSON else f"{shown(value)}: {reason}"


def _listed(names: Mapping[str, Any]) -> str:
    return f"; there are {', '.join(name for name in names if not name.endswith('UNSPECIFIED'))}"


def _refusal(value: Any, kind: Any) -> str:
    """What the vendor's parser says of a message; "" if it takes it."""
    from google.protobuf import json_format

    try:
        json_format.ParseDict(value, kind(), ignore_unknown_fields=False)
    except (json_format.ParseError, TypeError, ValueError, AttributeError) as error:
        text = str(error) or type(error).__name__
        return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}..."
    return ""


def _class_of(descriptor: Any) -> Any:
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(descriptor)
