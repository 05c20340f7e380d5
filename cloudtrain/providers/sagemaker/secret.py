"""Secrets: names of Secrets Manager's secrets and SSM's parameters; launch.py reads them with the job's role."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cloudtrain.providers.sagemaker.environment import LONGEST
from cloudtrain.providers.secret import unusable_secrets

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.spec.problems import Path

_REFERENCE = (
    r"arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[A-Za-z0-9/_+=.@-]+"
    r"|arn:aws[a-z-]*:ssm:[a-z0-9-]+:\d{12}:parameter/[A-Za-z0-9/_.-]+"
    r"|[A-Za-z0-9/_+=.@-]+"
)
_FORM = "the name or ARN of a Secrets Manager secret, or the ARN of an SSM parameter"


def secret_problems(job: Job) -> Iterator[tuple[Path, str]]:
    """Secrets that are missing here or no reference."""
    return unusable_secrets(job, "sagemaker", _FORM, _flaw_of)


def _flaw_of(reference: str) -> str | None:
    if not re.fullmatch(_REFERENCE, reference):
        return f"is no reference of a secret: give {_FORM}"
    return f"has {len(reference)} characters, at most {LONGEST} on SageMaker" if len(reference) > LONGEST else None
