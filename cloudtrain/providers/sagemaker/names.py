"""Names of training jobs: what users mean by one, and which are cloudtrain's."""

from __future__ import annotations

import re

from cloudtrain.errors import SpecError
from cloudtrain.spec.problems import shown

_NAME = r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}"
_ARN = rf"arn:aws[a-z-]*:sagemaker:(?P<region>[a-z0-9-]+):[0-9]{{12}}:training-job/(?P<name>{_NAME})"
_OURS = r"(?P<run>[a-z0-9-]{1,40}-[0-9a-f]{10}(-[0-9]{1,6})?)-a(?P<attempt>[0-9]{1,8})"
"""As ``identity.native_name`` makes them."""


def native_id(text: str, region: str) -> str:
    """The name of the job that ``text``, a name or an ARN, stands for. Raises SpecError if it can be none."""
    if re.fullmatch(_NAME, text):
        return text
    arn = re.fullmatch(_ARN, text)
    if arn is None:
        raise SpecError(
            f"{shown(text)} is no training job: its name has at most 63 of a-z A-Z 0-9 -, its ARN begins with "
            "arn:aws:sagemaker:"
        )
    if arn["region"] != region:
        raise SpecError(
            f"{arn['name']} is a job in {arn['region']}, and the settings name {region}",
            hint=f"give --set sagemaker.region={arn['region']}",
        )
    return arn["name"]


def run_of(name: str) -> tuple[str, int] | None:
    """Run and attempt, by the name that cloudtrain gives a job; None for another's."""
    found = re.fullmatch(_OURS, name)
    return (found["run"], int(found["attempt"])) if found else None


def beginning_of(run_id: str) -> str | None:
    """What the names of a run's attempts begin with; None if no job can have such a name."""
    return f"{run_id}-a" if re.fullmatch(_NAME, run_id) and len(run_id) <= 60 else None
