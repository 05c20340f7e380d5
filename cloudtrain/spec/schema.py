"""The JSON Schema of the job file, for editors: made from the fields' own checks and descriptions.

It is a little stricter than reading is (a name that looks like a number must be quoted) and knows single fields only:
what several fields get wrong together, ``cloudtrain validate`` finds.
"""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from cloudtrain.job import Job

DIALECT = "https://json-schema.org/draft/2020-12/schema"
IDENTITY = "urn:cloudtrain:job-file:1"

_STARTS = ("entry", "module", "task")  # exactly one


def job_file_schema() -> dict[str, Any]:
    """JSON Schema, draft 2020-12, as plain data."""
    made = Job.model_json_schema(schema_generator=_Generator)
    made["title"] = "cloudtrain job file"
    made["oneOf"] = [{"required": [start]} for start in _STARTS]
    for start in _STARTS:
        made["properties"][start]["type"] = "string"  # an empty one would count as given
    return {"$schema": DIALECT, "$id": IDENTITY, **made}


class _Generator(GenerateJsonSchema):
    """No titles that repeat a key's name, only defaults that a reader can use, and null for every optional field."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - pydantic's signature
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        inner = self.generate_inner(schema["schema"])
        default = schema.get("default")
        return {**inner, "default": default} if isinstance(default, (str, int)) else inner

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        made.pop("title", None)
        required = made.get("required", [])
        for name, field in made.get("properties", {}).items():
            if name not in required:
                made["properties"][name] = _or_null(field)
        return made

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])


def _or_null(field: dict[str, Any]) -> dict[str, Any]:
    """An empty section or value in a file means its default."""
    if "enum" in field:
        return {**field, "enum": [*field["enum"], None]}
    if kinds := field.get("type"):
        return {**field, "type": [*([kinds] if isinstance(kinds, str) else kinds), "null"]}
    told = {key: value for key, value in field.items() if key in ("description", "default", "examples")}
    shape = {key: value for key, value in field.items() if key not in told}
    return {"anyOf": [*shape.get("anyOf", [shape]), {"type": "null"}], **told}
