"""Secrets: the request carries the name of a Secret Manager version, launch.py fetches its value on the node."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cloudtrain.providers.vertex.fieldpath import own

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.spec.problems import Path

_REFERENCE = (
    r"(?:projects/(?P<project>[a-z0-9.:-]+)/secrets/)?(?P<secret>[A-Za-z0-9_-]{1,255})"
    r"(?:/versions/(?P<version>[0-9]+|[A-Za-z][A-Za-z0-9_-]{0,62}))?"
)


def version_name(reference: str, project: str) -> str:
    """The full name of a secret's version; ``project`` and the latest version where the job does not say."""
    found = re.fullmatch(_REFERENCE, reference)
    if found is None:
        raise ValueError("no reference of a secret")
    owner, secret, version = found.group("project", "secret", "version")
    return f"projects/{owner or project}/secrets/{secret}/versions/{version or 'latest'}"


def secret_problems(job: Job) -> Iterator[tuple[Path, str]]:
    """Secrets that are missing here or no reference. What stands there is not shown: it might be the secret itself."""
    for name, reference in job.environment.secrets_for("vertex").items():
        path = ("environment", "secrets", name)
        if reference is None:
            yield path, f"names no secret for Vertex AI; give environment.secrets.{name}.vertex, {_FORM}"
        elif not re.fullmatch(_REFERENCE, reference):
            given = job.environment.secrets[name]
            yield own(path, given), f"is no name of a secret: give {_FORM}"


_FORM = "a secret of Secret Manager such as my-key or projects/PROJECT/secrets/my-key/versions/3"
