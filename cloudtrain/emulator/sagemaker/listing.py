"""ListTrainingJobs: filters, order, and pages by a token."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cloudtrain.emulator.sagemaker.errors import invalid

if TYPE_CHECKING:
    from cloudtrain.emulator.sagemaker.record import Record

_PAGE = 10
_KEYS: Mapping[str, Callable[[Record], Any]] = {
    "Name": lambda job: job.name,
    "CreationTime": lambda job: job.created,
    "Status": lambda job: job.state.status,
}


def page(jobs: Iterable[Record], asked: Mapping[str, Any]) -> dict[str, Any]:
    """The answer. ``StatusEquals`` is applied when the page has been cut, so a page may be short, or empty, with more
    behind it (AWS's reference of the call)."""
    by = asked.get("SortBy", "CreationTime")

    def place(job: Record) -> tuple[Any, str]:
        return _KEYS[by](job), job.name

    backwards = asked.get("SortOrder") == "Descending"
    found = sorted((job for job in jobs if _is_asked_for(job, asked)), key=place, reverse=backwards)
    if token := asked.get("NextToken"):
        last = _last(token, by)
        found = [job for job in found if (place(job) < last if backwards else place(job) > last)]
    most = asked.get("MaxResults", _PAGE)
    cut, more = found[:most], len(found) > most
    status = asked.get("StatusEquals")
    return {
        "TrainingJobSummaries": [job.summary() for job in cut if status in (None, job.state.status)],
        **({"NextToken": _token(place(cut[-1]), by)} if more else {}),
    }


def _is_asked_for(job: Record, asked: Mapping[str, Any]) -> bool:
    """No job here has a warm pool or a training plan."""
    never = "WarmPoolStatusEquals" in asked or "TrainingPlanArnEquals" in asked
    return not never and (
        asked.get("NameContains", "") in job.name
        and asked.get("CreationTimeAfter", job.created - 1)
        < job.created
        < asked.get("CreationTimeBefore", job.created + 1)
        and asked.get("LastModifiedTimeAfter", job.modified - 1) < job.modified
        and job.modified < asked.get("LastModifiedTimeBefore", job.modified + 1)
    )


def _token(place: tuple[Any, str], by: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([by, *place]).encode()).decode()


def _last(token: str, by: str) -> tuple[Any, str]:
    """The place of the last job of the page before."""
    try:
        of, value, name = json.loads(base64.urlsafe_b64decode(token))
        if of != by or not isinstance(value, float if by == "CreationTime" else str) or not isinstance(name, str):
            raise ValueError
    except (ValueError, TypeError):
        raise invalid("Invalid pagination token.") from None
    return value, name
