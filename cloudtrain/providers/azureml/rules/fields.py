"""Fields that the form does not have, that the client drops without a word, or that must be mappings and are not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cloudtrain.errors import did_you_mean
from cloudtrain.providers.azureml import form
from cloudtrain.providers.azureml.reading import plain, sections
from cloudtrain.providers.base import NativeProblem
from cloudtrain.providers.reading import section
from cloudtrain.spec.problems import Path, shown

_MAPPINGS = (
    "tags", "properties", "environment_variables", "resources", "distribution", "inputs", "outputs", "limits",
    "identity", "queue_settings", "services",
)  # fmt: skip
_PLAIN_SECTIONS = {"resources": form.RESOURCES, "limits": form.LIMITS, "queue_settings": form.QUEUE}
_BY_TYPE = {"distribution": form.DISTRIBUTIONS, "identity": form.IDENTITY_FIELDS}


def problems(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    """The problems of the whole form."""
    yield from _unknown((), native, form.JOB)
    for name in _MAPPINGS:
        if name in native and not isinstance(native[name], Mapping):
            yield NativeProblem((name,), f"must be a mapping, not {shown(native[name])}")
    for name, known in _PLAIN_SECTIONS.items():
        yield from _unknown((name,), section(native, name), known)
    yield from _unknown(("environment",), section(native, "environment"), form.ENVIRONMENT_FIELDS)
    for name, kinds in _BY_TYPE.items():
        yield from _typed((name,), section(native, name), kinds)
    for path, service in sections(native, "services"):
        yield from _typed(path, service, form.SERVICES)
    for name, known in {"inputs": form.INPUT, "outputs": form.OUTPUT}.items():
        for path, item in sections(native, name):
            yield from _unknown(path, item, known)


def _typed(path: Path, item: Mapping[str, Any], kinds: Mapping[str, tuple[str, ...]]) -> Iterator[NativeProblem]:
    """A section whose fields depend on its type."""
    if not item:
        return
    known = next((fields for kind, fields in kinds.items() if plain(kind) == plain(item.get("type"))), None)
    if known is None:
        named = shown(item["type"]) if "type" in item else "nothing"
        near = did_you_mean(str(item.get("type")), kinds)
        yield NativeProblem((*path, "type"), f"must be one of {', '.join(kinds)}, not {named}{near}")
    else:
        yield from _unknown(path, item, known)


def _unknown(path: Path, item: Mapping[str, Any], known: Iterable[str]) -> Iterator[NativeProblem]:
    names = list(known)
    dropped = form.DROPPED_BELOW.get(str(path[0]) if path else "", ())
    for key in item:
        if key in dropped:
            yield NativeProblem((*path, key), "is not sent: the client drops it without a word")
        elif key not in names:
            near = did_you_mean(str(key), names) or f"; known here: {', '.join(names)}"
            yield NativeProblem((*path, key), f"unknown field{near}", unknown=True)
