"""Overrides laid over a request: by key, by item, taken out; and where the job file says what is not there."""

from __future__ import annotations

from typing import Any

import pytest

from cloudtrain.job import Job
from cloudtrain.providers.overrides import overridden
from cloudtrain.spec.problems import JobFileError
from tests.providers.contexts import job_of

MADE: dict[str, Any] = {"a": {"x": 1, "y": 2}, "list": [{"n": 1}, {"n": 2}, {"n": 3}], "text": "t"}


def laid(over: dict[str, Any]) -> dict[str, Any]:
    job = Job.model_validate({"name": "j", "entry": "t.py", "overrides": {"vertex": over}})
    return overridden(job, "vertex", MADE, lambda *_: ())


@pytest.mark.parametrize(
    ("over", "changed"),
    [
        ({}, {}),
        ({"a": {"x": 9}}, {"a": {"x": 9, "y": 2}}),
        ({"a": {"x": None}}, {"a": {"y": 2}}),
        ({"a": None}, {"a": None}),
        ({"a": 5}, {"a": 5}),
        ({"a": []}, {"a": []}),
        ({"new": {"deep": {"gone": None, "kept": False}}}, {"new": {"deep": {"kept": False}}}),
        ({"text": {"x": 1}}, {"text": {"x": 1}}),
        ({"list": [7]}, {"list": [7]}),
        ({"list": {"1": {"n": 9}}}, {"list": [{"n": 1}, {"n": 9}, {"n": 3}]}),
        ({"list": {"*": {"m": 0}}}, {"list": [{"n": 1, "m": 0}, {"n": 2, "m": 0}, {"n": 3, "m": 0}]}),
        ({"list": {"*": {"n": 0}, "2": {"n": 5}}}, {"list": [{"n": 0}, {"n": 0}, {"n": 5}]}),
        ({"list": {"0": None}}, {"list": [{"n": 2}, {"n": 3}]}),
        ({"list": {"0": None, "1": {"n": 9}}}, {"list": [{"n": 9}, {"n": 3}]}),  # numbers are those of before
        ({"list": {"*": None}}, {"list": []}),
        ({"list": {"1": "text"}}, {"list": [{"n": 1}, "text", {"n": 3}]}),
        ({"nowhere": None}, {}),
    ],
)
def test_merging(over: dict[str, Any], changed: dict[str, Any]) -> None:
    expected = {name: value for name, value in {**MADE, **changed}.items() if value is not None}
    assert laid(over) == expected
    assert MADE["a"] == {"x": 1, "y": 2} and MADE["list"][1] == {"n": 2}


JOB = """
name: j
entry: t.py
overrides:
  vertex:
    list:
      "3": {n: 1}
      "-1": {n: 1}
      x: {n: 1}
    a: {deep: []}
"""


def test_items_that_are_not_there_are_all_told_at_their_lines() -> None:
    with pytest.raises(JobFileError) as caught:
        overridden(job_of(JOB), "vertex", MADE, lambda *_: ())
    told = [str(problem) for problem in caught.value.problems]
    assert [line.partition(": overrides")[0] for line in told] == ["job.yaml:7:12", "job.yaml:8:13", "job.yaml:9:10"]
    assert all("(0 to 2)" in line for line in told)


def test_what_is_lost_is_refused_at_its_place() -> None:
    def owned(made: Any, merged: Any) -> list[tuple[tuple[str, ...], str]]:
        return [(("overrides", "vertex", "a"), "is ours")] if made["a"] != merged["a"] else []

    with pytest.raises(JobFileError, match=r"job\.yaml:10:8: overrides\.vertex\.a: is ours"):
        overridden(
            job_of(JOB.replace('"3"', '"0"').replace('"-1"', '"1"').replace(" x:", ' "*":')), "vertex", MADE, owned
        )
