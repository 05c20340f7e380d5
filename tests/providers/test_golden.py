"""Requests against whole files that people have read, and against which a change of a line has to stand."""

from __future__ import annotations

import json

import pytest

from tests.providers import golden
from tests.providers.contexts import PROVIDERS


@pytest.mark.parametrize(("name", "provider"), golden.cases())
def test_the_request_is_the_one_that_was_reviewed(name: str, provider: str) -> None:
    assert golden.kept(name, provider).is_file(), f"no request is kept; to keep what is made now: {golden.ACCEPT}"
    difference = golden.difference(name, provider)
    assert not difference, f"{difference}\nto accept it: {golden.ACCEPT}"


def test_every_kept_request_belongs_to_a_job() -> None:
    files = {path.relative_to(golden.FOLDER).as_posix() for path in golden.FOLDER.glob("*/*.json")}
    assert files == {f"{name}/{provider}.json" for name, provider in golden.cases()}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_two_long_names_with_one_head_stay_different(provider: str) -> None:
    first, second = (json.loads(golden.made(name, provider))["request"] for name in ("long-name", "long-name-twin"))
    names = [
        request.get("TrainingJobName") or request.get("displayName") or request["name"] for request in (first, second)
    ]
    assert names[0] != names[1]
    assert all(len(name) <= 63 for name in names)
