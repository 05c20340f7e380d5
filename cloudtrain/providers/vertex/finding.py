"""Which jobs are meant: those of a run, the one that a request has made, the one that a user names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cloudtrain.errors import NotFoundError, RefusedError, SpecError
from cloudtrain.providers.base import Request
from cloudtrain.providers.nodes import FINGERPRINT
from cloudtrain.providers.reading import text
from cloudtrain.providers.vertex.jobs import Job, Jobs
from cloudtrain.providers.vertex.labels import OURS
from cloudtrain.providers.vertex.states import moment, our_variables
from cloudtrain.spec.problems import shown

_NUMBER = re.compile(r"[0-9]{1,20}")
_RESOURCE = re.compile(r"projects/[^/\s]+/locations/(?P<region>[^/\s]+)/customJobs/[0-9]{1,20}")
_LONGEST_NAME = 128


def of_run(run_id: str | None) -> str:
    """The filter for the jobs of a run, or all that cloudtrain has made."""
    return f'labels.{OURS}run="{_quoted(run_id)}"' if run_id is not None else f"labels.{OURS}run:*"


def made_by(jobs: Jobs, request: Request) -> Job | None:
    """The job that this very request has made. Raises RefusedError if another one has its labels.

    Display names are not unique, and labels need not be: the fingerprint in the job's variables tells.
    """
    labels = [(name, text(request.native, "labels", f"{OURS}{name}")) for name in ("run", "attempt")]
    found = list(jobs.list(" AND ".join(f'labels.{OURS}{name}="{_quoted(value)}"' for name, value in labels)))
    wanted = our_variables(request.native).get(FINGERPRINT)
    same = [job for job in found if our_variables(job).get(FINGERPRINT) == wanted]
    if same:
        return _likeliest(same)
    if found:
        raise RefusedError(
            f"another custom job is called {request.name}: {text(found[0], 'name')} was made from another request",
            hint="submit with --new, or give the job another name",
            cause="invalid",
        )
    return None


def native_id(given: str, jobs: Jobs, parent: str) -> str:
    """The resource name of the job that ``given`` is the number, the resource name or the display name of.

    Raises SpecError if it can be none, NotFoundError if no job is called so.
    """
    if _NUMBER.fullmatch(given):
        return f"{parent}/customJobs/{given}"
    if resource := _RESOURCE.fullmatch(given):
        region = parent.rpartition("/")[2]
        if resource["region"] != region:
            raise SpecError(
                f"{given} is not in {region}, the region of these settings", hint="give --set region=..., or change it"
            )
        return given
    if not given or "/" in given or not given.isprintable() or len(given) > _LONGEST_NAME:
        raise SpecError(
            f"{shown(given)} is no custom job's number, name, or projects/PROJECT/locations/REGION/customJobs/NUMBER"
        )
    found = list(jobs.list(f'display_name="{_quoted(given)}"'))
    if not found:
        raise NotFoundError(f"there is no custom job {shown(given)} in {parent}")
    return text(_likeliest(found), "name")


def _likeliest(jobs: Iterable[Job]) -> Job:
    """The newest of those that go on, or else of all."""
    return max(jobs, key=lambda job: (moment(job, "endTime") is None, moment(job, "createTime") or 0.0))


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')
