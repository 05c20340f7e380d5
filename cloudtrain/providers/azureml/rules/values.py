"""The limit, the alphabet and the words of each field; of these the vendor's loader checks the words only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cloudtrain.providers.azureml import form
from cloudtrain.providers.azureml.reading import fits, is_spot
from cloudtrain.providers.azureml.rules.kinds import whole, word
from cloudtrain.providers.base import NativeProblem
from cloudtrain.providers.reading import section
from cloudtrain.spec.problems import shown

_TEXTS = {
    "name": (form.LONGEST_NAME, form.NAME, "lower-case letters, digits, _ and -, beginning with a letter or digit"),
    "display_name": (form.LONGEST_DISPLAY_NAME, None, ""),
    "description": (form.LONGEST_DESCRIPTION, None, ""),
    "experiment_name": (form.LONGEST_NAME, r"[A-Za-z0-9][\w-]*", "letters, digits, _ and -"),
    "command": (None, r"[\s\S]*\S[\s\S]*", "a command"),
}
_COMPUTE = r"azureml:/subscriptions/.+|(?:azureml:)?[A-Za-z][A-Za-z0-9-]*"


def problems(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    """The problems of every field by itself."""
    for rule in (_type, _texts, _tags, _compute, _resources, _limits, _queue):
        yield from rule(native)


def _type(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    if native.get("type", "command") != "command":
        yield NativeProblem(("type",), f"must be command, not {shown(native['type'])}: launch.py runs as a command job")


def _texts(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    for name, (longest, pattern, alphabet) in _TEXTS.items():
        value = native.get(name)
        if value is None:
            if name == "command":
                yield NativeProblem((name,), "is missing: a command job needs one")
        elif not isinstance(value, str):
            yield NativeProblem((name,), f"must be text, not {shown(value)}")
        elif longest and len(value) > longest:
            yield NativeProblem((name,), f"has {len(value)} characters, at most {longest}")
        elif pattern and not fits(pattern, value):
            yield NativeProblem((name,), f"must be made of {alphabet}, not {shown(value)}")


def _tags(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    for name in ("tags", "properties"):
        tags = section(native, name)
        if len(tags) > form.MOST_TAGS:
            yield NativeProblem((name,), f"has {len(tags)} entries, at most {form.MOST_TAGS}")
        for key, value in tags.items():
            if len(key) > form.LONGEST_TAG_KEY:
                yield NativeProblem((name, key), f"its name has {len(key)} characters, at most {form.LONGEST_TAG_KEY}")
            if not isinstance(value, str):
                yield NativeProblem((name, key), f"must be text, not {shown(value)}")
            elif len(value) > form.LONGEST_TAG_VALUE:
                yield NativeProblem((name, key), f"has {len(value)} characters, at most {form.LONGEST_TAG_VALUE}")


def _compute(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    compute = native.get("compute")
    name = compute.removeprefix("azureml:") if isinstance(compute, str) else ""
    if name in ("serverless", "local"):
        does = {
            "serverless": "would be taken for a cluster's name: leave compute out for serverless",
            "local": "would run on the machine that submits: name a compute, or leave it out for serverless",
        }
        yield NativeProblem(("compute",), f"{name} {does[name]}")
    elif compute is not None and not fits(_COMPUTE, compute):
        yield NativeProblem(("compute",), f"must be azureml:NAME, the name of a compute, not {shown(compute)}")


def _resources(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    resources = section(native, "resources")
    for name in ("instance_count", "max_instance_count"):
        if name in resources:
            yield from whole(("resources", name), resources[name], form.MOST_NODES)
    texts = {
        "shm_size": (form.SHM_SIZE, "a number and b, k, m or g, such as 16g"),
        "instance_type": (r"[^\s,]+", "one size such as Standard_D4s_v5"),
    }
    for name, (pattern, must) in texts.items():
        value = resources.get(name)
        if value is not None and not fits(pattern, value):
            yield NativeProblem(("resources", name), f"must be {must}, not {shown(value)}")


def _limits(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    limits = section(native, "limits")
    if "timeout" in limits:
        longest = form.LONGEST_SPOT_RUNTIME if is_spot(native) else form.LONGEST_RUNTIME
        why = f" ({form.LONGEST_RUNTIME // form.DAY} days, {form.LONGEST_SPOT_RUNTIME // form.DAY} on low-priority)"
        yield from whole(("limits", "timeout"), limits["timeout"], longest, why)


def _queue(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    queue = section(native, "queue_settings")
    for name, words in (("job_tier", form.JOB_TIERS), ("priority", form.PRIORITIES)):
        if name in queue:
            yield from word(("queue_settings", name), queue[name], words)
