"""The filter language, by examples of Google's documentation and by what gcloud sends."""

from __future__ import annotations

from typing import Any

import pytest

from cloudtrain.emulator.vertex import filters
from cloudtrain.emulator.vertex.errors import ServiceError

ENTRY = {
    "resource": {"type": "ml_job", "labels": {"job_id": "123", "task_name": "workerpool0-0"}},
    "timestamp": "2026-12-01T02:54:57.500000000Z",
    "insertId": "0b",
    "severity": "WARNING",
    "labels": {"ml.googleapis.com/job_id": "123"},
    "jsonPayload": {"message": "loss is 0.5"},
}


def _lookup(path: tuple[str, ...]) -> Any:
    found: Any = ENTRY
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    return found


MATCHES = [
    "",
    'resource.type="ml_job"',
    "resource.type=ml_job",
    'resource.type="ml_job" AND resource.labels.job_id="123"',
    'resource.type="ml_job" resource.labels.job_id="123"',
    'resource.type="ml_job"\nresource.labels.job_id="123"',
    'labels."ml.googleapis.com/job_id"="123"',
    'timestamp>="2026-12-01T02:54:57.5Z"',
    'timestamp>"2026-12-01T03:54:57.4+01:00"',
    "timestamp<=2026-12-01T02:54:57.5Z",
    'timestamp<"2026-12-02T00:00:00Z"',
    # How gcloud reads on: behind a place, which is a time and an insertId.
    '((timestamp="2026-12-01T02:54:57.5Z" AND insertId>"0a") OR timestamp>"2026-12-01T02:54:57.5Z")',
    "severity>=INFO",
    "severity!=ERROR",
    'NOT resource.labels.task_name="service"',
    '-resource.labels.task_name="service"',
    'jsonPayload.message:"LOSS"',
    'jsonPayload.message=~"loss is [0-9.]+"',
    "labels:*",
    # OR binds more tightly than AND: false AND (x OR y) would be true the other way round.
    'insertId="0b" AND severity=ERROR OR severity=WARNING',
    'NOT (severity=ERROR AND insertId="0b")',
]
MATCHES_NOT = [
    'resource.type="gce_instance"',
    'timestamp>"2026-12-01T02:54:57.500000000Z"',
    '((timestamp="2026-12-01T02:54:57.5Z" AND insertId>"0b") OR timestamp>"2026-12-01T02:54:57.5Z")',
    "severity>WARNING",
    'severity=WARNING AND insertId="0c" OR insertId="0d"',
    'textPayload="x"',
    "textPayload:*",
    'NOT insertId="0b"',
]
REFUSED = [
    "AND", "(", 'a="b', "a=", '="b"', "a", '"some text"', "a=b)", 'a=~"["', "a=b OR", "a=b AND", "a..b=c", "a=!",
]  # fmt: skip


@pytest.mark.parametrize("text", MATCHES)
def test_it_matches(text: str) -> None:
    assert filters.parse(text).matches(_lookup)


@pytest.mark.parametrize("text", MATCHES_NOT)
def test_it_does_not_match(text: str) -> None:
    assert not filters.parse(text).matches(_lookup)


@pytest.mark.parametrize("text", REFUSED)
def test_it_is_no_filter(text: str) -> None:
    with pytest.raises(ServiceError, match="Unparseable filter"):
        filters.parse(text)


@pytest.mark.parametrize("text", MATCHES)
def test_what_need_not_be_looked_at(text: str) -> None:
    """A job that is not pinned, and what is before the earliest time, cannot match: this entry does."""
    found = filters.parse(text)
    assert found.pinned(("resource", "labels", "job_id")) in (None, "123")
    moment = filters.nanoseconds(str(ENTRY["timestamp"]))
    assert moment is not None
    assert (found.earliest(("timestamp",)) or 0) <= moment


def test_times() -> None:
    assert filters.nanoseconds("1970-01-01T00:00:01.000000001Z") == 1_000_000_001
    assert filters.nanoseconds("1970-01-01T01:00:00+01:00") == 0
    assert filters.nanoseconds("2026-13-01T00:00:00Z") is None
    assert filters.nanoseconds("yesterday") is None
