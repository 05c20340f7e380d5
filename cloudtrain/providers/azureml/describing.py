"""A job as the service tells of it, as a Description."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from cloudtrain.providers.azureml.errors import shown, words_of
from cloudtrain.providers.azureml.folders import OURS
from cloudtrain.providers.azureml.states import ended, seconds_of, state_of
from cloudtrain.providers.nodes import FINGERPRINT
from cloudtrain.providers.port import Description
from cloudtrain.providers.reading import section, text, whole

RETRY = r"user_logs/retry_([0-9]{1,4})/"
"""How the log files of a later start of the same job begin (public tools for the service read them so)."""
_TIME = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:?\d\d)?"


def description(job: Mapping[str, Any], details: Mapping[str, Any]) -> Description:
    """``job``: the resource, ``details``: what the run history adds, {} where nothing was asked or known of it."""
    said = section(job, "properties")
    name = text(job, "name") or text(job, "id").rpartition("/")[2]
    word = text(said, "status")
    started = _first_time(details, said, "startTimeUtc", "startTime")
    over = _first_time(details, said, "endTimeUtc", "endTime")
    codes, message = words_of(section(details, "error"))
    ran = over - started if over is not None and started is not None else None
    limit = seconds_of(text(said, "limits", "timeout"))
    state, cause = ended(state_of(word), f"{codes} {message}", ran=ran, limit=limit)
    variables, tags = section(said, "environmentVariables"), section(said, "tags")
    attempt = text(variables, "CLOUDTRAIN_ATTEMPT")
    return Description(
        provider="azureml",
        native_id=name,
        name=name,
        state=state,
        vendor_state=shown(word) or "(none)",
        reason=message,
        cause=cause,
        run_id=text(variables, "CLOUDTRAIN_RUN_ID") or text(tags, f"{OURS}run"),
        attempt=int(attempt) if re.fullmatch(r"[0-9]{1,6}", attempt) else 1,
        fingerprint=text(variables, FINGERPRINT),
        created=_seconds(text(job, "systemData", "createdAt")),
        started=started,
        ended=over if state.is_final else None,
        restarts=_restarts(details),
        url=text(said, "services", "Studio", "endpoint"),
        nodes=whole(said, "resources", "instanceCount") or 0,
        policy=text(variables, "CLOUDTRAIN_POLICY"),
    )


def _first_time(details: Mapping[str, Any], said: Mapping[str, Any], of_history: str, of_job: str) -> float | None:
    found = _seconds(text(details, of_history))
    return found if found is not None else _seconds(text(said, of_job))


def _seconds(time: str) -> float | None:
    """``2026-11-30T12:00:00.1234567Z`` in seconds since the epoch. Without a zone it is UTC: the service's are."""
    found = re.fullmatch(_TIME, time)
    if not found:
        return None
    second, fraction, zone = found.groups()
    zone = "+00:00" if zone in (None, "Z") else zone
    try:
        moment = datetime.fromisoformat(f"{second}{zone if ':' in zone else zone[:3] + ':' + zone[3:]}")
    except ValueError:
        return None
    return moment.timestamp() + float(fraction or 0)


def _restarts(details: Mapping[str, Any]) -> int:
    found = [re.match(RETRY, name) for name in section(details, "logFiles")]
    return max((int(match[1]) for match in found if match), default=0)
