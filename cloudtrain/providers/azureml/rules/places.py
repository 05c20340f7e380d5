"""Inputs and outputs: names, types, modes, and where they may lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cloudtrain.providers.azureml import form
from cloudtrain.providers.azureml.reading import fits, plain, sections
from cloudtrain.providers.azureml.rules.kinds import word
from cloudtrain.providers.base import NativeProblem
from cloudtrain.providers.reading import section
from cloudtrain.spec.problems import Path, shown


def problems(native: Mapping[str, Any]) -> Iterator[NativeProblem]:
    """The problems of every input and output by itself."""
    for name in ("inputs", "outputs"):
        for key in section(native, name):
            if not fits(form.KEY, key):
                yield NativeProblem((name, key), "its name must be letters, digits and _, not beginning with a digit")
    for path, item in sections(native, "inputs"):
        if "value" not in item:
            yield from _input(path, item)
    for path, item in sections(native, "outputs"):
        yield from _output(path, item)


def _input(path: Path, item: Mapping[str, Any]) -> Iterator[NativeProblem]:
    kind = item.get("type", "uri_folder")
    yield from word((*path, "type"), kind, form.INPUT_TYPES)
    if "mode" in item:
        yield from word((*path, "mode"), item["mode"], form.TABLE_MODES if kind == "mltable" else form.INPUT_MODES)
    place = item.get("path")
    if place is None:
        yield NativeProblem((*path, "path"), f"is missing; it may be {form.INPUT_FORMS}")
    elif plain(kind) in ("urifolder", "urifile") and not fits(form.INPUT_PATH, place):
        text = f"{shown(place)} is no place that Azure ML reads; it reads {form.INPUT_FORMS}"
        yield NativeProblem((*path, "path"), text)


def _output(path: Path, item: Mapping[str, Any]) -> Iterator[NativeProblem]:
    """Without a path the service chooses one, which no second attempt finds again; but it is allowed."""
    for name, words in (("type", form.OUTPUT_TYPES), ("mode", form.OUTPUT_MODES)):
        if name in item:
            yield from word((*path, name), item[name], words)
    place = item.get("path")
    if place is not None and not fits(form.DATASTORE_PATH, place):
        text = f"{shown(place)} is no place that Azure ML writes to; write {form.OUTPUT_FORM}"
        yield NativeProblem((*path, "path"), text)
