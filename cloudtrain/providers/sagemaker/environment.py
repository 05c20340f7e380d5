"""``Environment``: ours, those of the machine's network, and the job's own.

The service takes 100 variables of at most 512 characters. The job's own are there to be seen, and for launch.py; ranks
get them from spec.json. What does not fit is refused: a variable that is in some places and not in others would be
found out in the middle of a job.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cloudtrain.providers.machine import network_of
from cloudtrain.providers.nodes import FINGERPRINT, SECRET, node_variables
from cloudtrain.providers.places import output_places, places_of
from cloudtrain.providers.sagemaker.places import ARCHIVE, SPEC, folder

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.base import Context
    from cloudtrain.providers.machine import Machine
    from cloudtrain.spec.problems import Path

MOST = 100
LONGEST = 512
REGION = "CLOUDTRAIN_SAGEMAKER_REGION"
"""Where the job runs. The request itself does not say; AWS_REGION in the container is seen, but not documented."""
OUTPUT = "CLOUDTRAIN_OUTPUT_"


def environment_of(job: Job, context: Context, machine: Machine) -> dict[str, str]:
    """All variables but the fingerprint, ours first."""
    named = output_places(job, "sagemaker", places_of(job, context).run)
    outputs = {f"{OUTPUT}{name.upper()}": folder(uri) for name, uri in named.items()}
    region = {REGION: context.settings["region"]}
    further = {**region, **outputs, **network_of(job, machine)}
    return node_variables(job, context, "sagemaker", spec=SPEC, code=ARCHIVE, further=further)


def environment_problems(job: Job, context: Context, machine: Machine) -> Iterator[tuple[Path, str]]:
    """What does not fit."""
    for name, uri in output_places(job, "sagemaker", places_of(job, context).run).items():
        if problem := _too_long(f"{OUTPUT}{name}") or _too_long(folder(uri)):
            yield ("outputs", name), f"{problem}, where it is a variable of the container"
    for name in job.environment.secrets:
        if problem := _too_long(f"{SECRET}{name}"):
            yield ("environment", "secrets", name), f"{problem}, where it is a variable of the container"
    for name, value in job.environment.env.items():
        if problem := _too_long(name) or _too_long(value):
            yield ("environment", "env", name), f"{problem}; pass it as an argument, or in a file that ships"
    number = len({*environment_of(job, context, machine), FINGERPRINT})
    if number > MOST:
        field = "env" if job.environment.env else "secrets"
        own = number - len(job.environment.env)
        text = (
            f"{number} variables, {own} of them secrets, outputs and cloudtrain's own; SageMaker takes at most {MOST}"
        )
        yield ("environment", field), text


def _too_long(text: str) -> str:
    return f"has {len(text)} characters, at most {LONGEST} on SageMaker" if len(text) > LONGEST else ""
