"""``AlgorithmSpecification``: the container image, and how it starts launch.py.

The entry point is a list of words, so launch.py is the container's first process and gets SIGTERM itself; a shell in
between would swallow it. ``python3`` rather than ``python``: AWS's images have both, Debian's and Ubuntu's own Python
has only that name, and in a virtual environment or conda both are the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from cloudtrain.providers.base import Chosen
from cloudtrain.providers.image import Image, image_of_catalogue, is_reference, refused_image, unchecked_torch
from cloudtrain.providers.sagemaker.places import LAUNCH
from cloudtrain.spec.problems import shown

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.machine import Machine

LONGEST = 255
_ECR = r"\d{12}\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.[a-z0-9.-]+/\S+"

_COMPAT = "/usr/local/bin/entrypoint.sh"
# AWS's images from PyTorch 2.11 on: repository ``pytorch``, tags such as 2.13-cu133-amzn2023-sagemaker.
_HAS_COMPAT = r".*\.dkr\.ecr\.[a-z0-9-]+\.[a-z0-9.-]+/pytorch:[0-9.]+-cu[0-9]+-amzn2023-sagemaker"


def algorithm_of(image: Image) -> dict[str, Any]:
    """The field of the request."""
    return {"TrainingImage": image.uri, "TrainingInputMode": "File", "ContainerEntrypoint": entrypoint_of(image.uri)}


def entrypoint_of(uri: str) -> list[str]:
    """launch.py; in AWS's newer CUDA images behind their own script, which ends in ``exec``.

    That script puts CUDA's forward-compatibility libraries in front where the machine's driver is older than the
    image's CUDA. Our entry point takes the place of the image's, which would have called it.
    """
    launch = ["python3", "-u", LAUNCH]
    return [_COMPAT, *launch] if "/pytorch:" in uri and re.fullmatch(_HAS_COMPAT, uri) else launch


def image_of(job: Job, region: str, machine: Machine) -> Image:
    """The job's own image, or one of the catalogue."""
    named = job.environment.image_for("sagemaker")
    image = _named(job, named, region) if named else image_of_catalogue(job, "sagemaker", region, machine)
    if entrypoint_of(image.uri)[0] == _COMPAT:
        reason = "the image's own script, for drivers older than its CUDA; it then becomes launch.py"
        return image._replace(chosen=(*image.chosen, Chosen("ContainerEntrypoint", _COMPAT, reason)))
    return image


def _named(job: Job, uri: str, region: str) -> Image:
    if flaw := _flaw_of(uri):
        return refused_image(job, "sagemaker", flaw)
    return Image(uri, notes=(*_about(uri, region), *unchecked_torch(job, "sagemaker", uri)))


def _flaw_of(uri: str) -> str | None:
    if not is_reference(uri):
        return f"{shown(uri)} is no image such as 111122223333.dkr.ecr.eu-west-1.amazonaws.com/train:1"
    return f"has {len(uri)} characters, at most {LONGEST} on SageMaker" if len(uri) > LONGEST else None


def _about(uri: str, region: str) -> tuple[str, ...]:
    found = re.fullmatch(_ECR, uri)
    if found is None:
        return (
            "environment.image: not in an ECR registry. SageMaker pulls from other registries only inside a VPC: set "
            "overrides.sagemaker.AlgorithmSpecification.TrainingImageConfig.TrainingRepositoryAccessMode: Vpc",
        )
    if found["region"] != region:
        return (f"environment.image: lies in {found['region']}, the job runs in {region}",)
    return ()
