"""Secrets: names of versions in Secret Manager, which launch.py reads with the job's service account."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cloudtrain.providers.secret import unusable_secrets

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
    """Secrets that are missing here or no reference."""
    return unusable_secrets(job, "vertex", _FORM, _flaw_of)


def _flaw_of(reference: str) -> str | None:
    return None if re.fullmatch(_REFERENCE, reference) else f"is no name of a secret: give {_FORM}"


_FORM = "a secret of Secret Manager such as my-key or projects/PROJECT/secrets/my-key/versions/3"
