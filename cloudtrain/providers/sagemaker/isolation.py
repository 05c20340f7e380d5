"""EnableNetworkIsolation (an override): containers reach each other and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.spec.problems import Path

_WITHOUT = "cannot work with EnableNetworkIsolation, which keeps the container from"


def isolation_problems(job: Job, native: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """What of the job needs the network from inside the container."""
    if native.get("EnableNetworkIsolation") is not True:
        return
    if job.environment.requirements:
        text = f"{_WITHOUT} every package index; build an image with the packages"
        yield ("environment", "requirements"), text
    if job.environment.secrets:
        yield ("environment", "secrets"), f"{_WITHOUT} Secrets Manager and SSM"
    if job.outputs:
        yield ("outputs",), f"{_WITHOUT} S3; write below ${{output}}, which SageMaker itself uploads"
