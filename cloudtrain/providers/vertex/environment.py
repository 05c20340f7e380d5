"""The variables of the container: ours, those of the machine's network, and the job's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cloudtrain.providers.base import Chosen
from cloudtrain.providers.machine import network_of
from cloudtrain.providers.nodes import FINGERPRINT, SECRET, node_variables
from cloudtrain.providers.places import places_of
from cloudtrain.providers.shipping import ARCHIVE, SPEC
from cloudtrain.providers.vertex.places import folder_variables, mounted
from cloudtrain.providers.vertex.secret import version_name

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.base import Context
    from cloudtrain.providers.machine import Machine
    from cloudtrain.providers.places import Places
    from cloudtrain.spec.problems import Path

MOST = 100
"""Variables of one container."""
PROJECT, REGION = "CLOUDTRAIN_VERTEX_PROJECT", "CLOUDTRAIN_VERTEX_REGION"
"""Where the job is: CustomJob itself does not say, and in the container Vertex AI tells the project's number only."""

RESERVED = re.compile(r"CLUSTER_SPEC|TF_CONFIG|(AIP|CLOUD_ML)_\w*")
"""Names that the service sets."""

_CLIENTS_PROJECT = "GOOGLE_CLOUD_PROJECT"


def environment_of(job: Job, context: Context, machine: Machine, places: Places) -> dict[str, str]:
    """All variables but the fingerprint, ours first. Values as the container is to find them."""
    return {
        name: version_name(value, context.settings["project"]) if name.startswith(SECRET) else value
        for name, value in _variables(job, context, machine, places).items()
    }


def project_for_clients(job: Job, context: Context) -> Iterator[Chosen]:
    """Inside a job, Google's libraries would take a project of Google's own for the default one, and be refused."""
    if _CLIENTS_PROJECT not in job.environment.env:
        reason = "else Google's libraries take a project that is not yours for the default one"
        yield Chosen(f"environment.env.{_CLIENTS_PROJECT}", context.settings["project"], reason)


def environment_problems(job: Job, context: Context, machine: Machine) -> Iterator[tuple[Path, str]]:
    """Names that Vertex AI takes for itself, and too many of them."""
    for section in ("env", "secrets"):
        for name in getattr(job.environment, section):
            if RESERVED.fullmatch(name):
                yield ("environment", section, name), "is set by Vertex AI on every node and cannot be given"
    given = len(job.environment.env)
    count = len(_variables(job, context, machine, places_of(job, context))) + len((FINGERPRINT,))
    if count > MOST:
        text = f"{given} variables and {count - given} of cloudtrain's own, at most {MOST} in all on Vertex AI"
        yield ("environment", "env"), text


def _variables(job: Job, context: Context, machine: Machine, places: Places) -> dict[str, str]:
    """With secrets as the job names them."""
    settings = context.settings
    return node_variables(
        job,
        context,
        "vertex",
        spec=f"{mounted(places.spec)}{SPEC}",
        code=f"{mounted(places.code)}{ARCHIVE}",
        further={
            **folder_variables(job, places),
            PROJECT: settings["project"],
            REGION: settings["region"],
            _CLIENTS_PROJECT: settings["project"],
            **network_of(job, machine),
        },
    )
