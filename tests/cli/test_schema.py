"""cloudtrain schema: judged by another implementation, and held against what reading a job file accepts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from cloudtrain.job import Job
from tests.cli.running import cloudtrain

FULL = Path(__file__).parents[1] / "jobfiles" / "full.yaml"
MINIMAL = {"name": "a", "entry": "t.py"}


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    done = cloudtrain("schema")
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def valid(schema: dict[str, Any], document: object) -> bool:
    return bool(jsonschema.Draft202012Validator(schema).is_valid(document))


def test_it_is_a_schema(schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"]


def test_every_field_is_described(schema: dict[str, Any]) -> None:
    for section in (schema, *schema["$defs"].values()):
        assert section["additionalProperties"] is False
        assert section["description"]
        for name, field in section["properties"].items():
            assert field.get("description"), name


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"args": {"a": 1, "b": True, "c": None, "d": [1, "x"], "e": ""}},
        {"args": ["--x", 7]},
        {"resources": None, "data": None, "spot": {"enabled": None}},
        {"resources": {"nodes": 2, "instance": {"vertex": "a2"}}},
        {"environment": {"torch": 2.8, "env": {"A": 1, "B": False}, "image": "x"}},
        {"data": {"t": {"uri": {"local": "x"}, "mode": "mount"}}, "outputs": {"m": "x"}},
        {"limits": {"runtime": "6h", "cost_usd": 0.5}, "checkpoint": {"every": "90s"}},
        {"overrides": {"vertex": {"any": [{"thing": None}]}}},
    ],
)
def test_good_documents(schema: dict[str, Any], more: dict[str, Any]) -> None:
    assert valid(schema, MINIMAL | more)
    assert Job.parse(json.dumps(MINIMAL | more))


def test_the_whole_file_is_good(schema: dict[str, Any]) -> None:
    assert valid(schema, yaml.safe_load(FULL.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "more",
    [
        {"nmae": "x"},
        {"name": "Not Good"},
        {"module": "a.b"},
        {"entry": None},
        {"entry": "../t.py"},
        {"version": 2},
        {"framework": "torch"},
        {"args": {"a": {"b": 1}}},
        {"args": {"--a": 1}},
        {"args": {"a": []}},
        {"resources": {"nodes": 0}},
        {"resources": {"nodes": "two"}},
        {"resources": {"node": 1}},
        {"environment": {"env": {"A B": "1"}}},
        {"environment": {"secrets": {"K": {"local": "hunter2"}}}},
        {"data": {"t": {"uri": {"sagmaker": "x"}}}},
        {"data": {"t": {"mode": "mount"}}},
        {"data": {"a-b": {"uri": "x"}}},
        {"limits": {"runtime": "6 hours"}},
        {"limits": {"runtime": 90}},
        {"limits": {"cost_usd": 0}},
        {"spot": True},
        {"overrides": {"local": {}}},
    ],
)
def test_bad_documents(schema: dict[str, Any], more: dict[str, Any]) -> None:
    assert not valid(schema, MINIMAL | more)
    with pytest.raises(Exception, match=r"job:\d+:\d+: "):
        Job.parse(json.dumps(MINIMAL | more), "job")
