"""A client of boto3, which the image has to bring: ours are to need nothing but the standard library and torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloudtrain_launch.errors import LaunchError


def client(service: str, needed_for: str, env: Mapping[str, str], region: str = "") -> Any:
    """The client, which retries by itself. Raises LaunchError that says what it was needed for."""
    try:
        import boto3
        from botocore.config import Config
    except ImportError as error:
        raise LaunchError(
            f"{needed_for}: this image has no boto3 ({error}); add boto3 to environment.requirements, or use an image "
            "that has it, such as AWS's own for training"
        ) from error
    config = Config(retries={"mode": "standard", "total_max_attempts": 6}, connect_timeout=10, read_timeout=60)
    return boto3.client(service, region_name=region or _region(env) or None, config=config)


def _region(env: Mapping[str, str]) -> str:
    """boto3 itself looks only at AWS_DEFAULT_REGION, and SageMaker sets another; the job's ARN has it in any case."""
    named = env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION", "")
    arn = env.get("TRAINING_JOB_ARN", "").split(":")
    return named or (arn[3] if len(arn) > 5 else "")
