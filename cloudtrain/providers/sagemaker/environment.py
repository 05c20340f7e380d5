"""``Environment``: ours, those of the machine's network, and the job's own.

The service takes 100 variables of at most 512 characters. The job's own are there to be seen; workers get them from
spec.json, which has no such limits. So those that do not fit are left out of the request, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cloudtrain.catalog.network import network_settings
from cloudtrain.providers.base import Chosen
from cloudtrain.providers.nodes import FINGERPRINT, node_variables
from cloudtrain.providers.sagemaker.places import ARCHIVE, SPEC, folder, output_uri

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
    variables = _all(job, context, machine)
    left_out = _left_out(job, variables)
    return {name: value for name, value in variables.items() if name not in left_out}


def environment_problems(job: Job, context: Context, machine: Machine) -> Iterator[tuple[Path, str]]:
    """What of ours does not fit."""
    for name in job.outputs:
        length = len(folder(output_uri(job, name) or ""))
        if length > LONGEST:
            text = f"has {length} characters, at most {LONGEST} on SageMaker, where it is a variable of the container"
            yield ("outputs", name), text
    ours = len(_all(job, context, machine).keys() - set(job.environment.env)) + 1
    if ours > MOST:
        given = len(job.environment.secrets) + len(job.outputs)
        text = f"{given} secrets and outputs and {ours - given} variables of cloudtrain's own, at most {MOST} in all"
        yield ("environment", "secrets") if job.environment.secrets else ("outputs",), text


def environment_notes(job: Job, context: Context, machine: Machine) -> Iterator[str]:
    """Variables that the request does not show."""
    left_out = sorted(_left_out(job, _all(job, context, machine)))
    if left_out:
        named = ", ".join(left_out[:5]) + (f" and {len(left_out) - 5} more" if len(left_out) > 5 else "")
        yield (
            f"environment.env: {named}: in spec.json alone, from which the ranks get them; the request itself holds "
            f"at most {MOST} variables of at most {LONGEST} characters"
        )


def environment_chosen(job: Job, machine: Machine) -> Iterator[Chosen]:
    """Network settings of the machine type."""
    for name, value in _network(job, machine).items():
        if name not in job.environment.env:
            yield Chosen(f"environment.env.{name}", value, f"network of {machine.name} between nodes")


def _all(job: Job, context: Context, machine: Machine) -> dict[str, str]:
    outputs = {f"{OUTPUT}{name.upper()}": folder(output_uri(job, name) or "") for name in job.outputs}
    region = {REGION: context.settings["region"]}
    network = {**region, **outputs, **_network(job, machine)}
    return node_variables(job, context, "sagemaker", spec=SPEC, code=ARCHIVE, network=network)


def _network(job: Job, machine: Machine) -> dict[str, str]:
    return network_settings(machine.instance, job.resources.nodes) if machine.instance else {}


def _left_out(job: Job, variables: dict[str, str]) -> set[str]:
    given = job.environment.env
    if len({*variables, FINGERPRINT}) > MOST:
        return set(given)
    return {name for name, value in given.items() if max(len(name), len(value)) > LONGEST}
