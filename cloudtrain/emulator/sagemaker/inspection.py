"""What the service looks at before it takes a job: the request itself, its image, its channels in S3."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cloudtrain.emulator.sagemaker import uris
from cloudtrain.emulator.sagemaker.errors import constraints, invalid, no_objects
from cloudtrain.providers.reading import at, mappings, text
from cloudtrain.providers.sagemaker.check import check

_ECR = r"\d{12}\.dkr\.ecr(-fips)?\.[a-z0-9-]+\.[a-z0-9.-]+/[^\s/].*"
_S3_TYPES = ("S3Prefix", "ManifestFile")
_BEYOND = {"ServerlessJobConfig": "serverless jobs", "ModelPackageConfig": "model packages"}


def inspect(native: Mapping[str, Any]) -> None:
    """Raises ApiError for a request that the service, or this emulator, does not take."""
    if problems := check(native).problems:
        raise constraints(problems)
    algorithm = native.get("AlgorithmSpecification", {})
    if not _can_be_pulled(algorithm):
        raise invalid(
            "Invalid training image. Please provide a valid Amazon Elastic Container Registry path of the Docker image "
            "to run."
        )
    _refuse_beyond(native)


def inspect_channels(native: Mapping[str, Any], s3: Any, region: str) -> None:
    """Raises ApiError for a channel without an object, or in a bucket that is not in the region."""
    from botocore.exceptions import BotoCoreError, ClientError

    for _, channel in mappings(native, "InputDataConfig"):
        uri = text(channel, "DataSource", "S3DataSource", "S3Uri")
        place = uris.Place.of(uri)
        try:
            found = uris.region_of(s3, place.bucket) == region and uris.has_objects(s3, place)
        except (BotoCoreError, ClientError):  # BotoCoreError: a name that no bucket can have
            found = False
        if not found:
            raise no_objects(uri, region, text(native, "RoleArn"), place.bucket)


def _can_be_pulled(algorithm: Mapping[str, Any]) -> bool:
    """Other registries than ECR are reached inside a VPC alone."""
    mode = text(algorithm, "TrainingImageConfig", "TrainingRepositoryAccessMode")
    return mode == "Vpc" or re.fullmatch(_ECR, text(algorithm, "TrainingImage")) is not None


def _refuse_beyond(native: Mapping[str, Any]) -> None:
    """What AWS has, and this emulator has not: said at once, rather than imitated badly."""
    beyond = [what for name, what in _BEYOND.items() if name in native]
    for _, channel in mappings(native, "InputDataConfig"):
        source = at(channel, "DataSource", "S3DataSource")
        kind = text(source, "S3DataType")
        if source is None:
            beyond.append("channels from file systems and data sets")
        elif kind not in _S3_TYPES:
            beyond.append(f"channels of type {kind}")
    if beyond:
        raise invalid(f"The emulator has no {beyond[0]}: this is no answer of AWS.")
