"""AWS Secrets Manager and Parameter Store, by the boto3 of the image and the job's role.

A reference is a secret's ARN or name, or the ARN of a parameter (``arn:aws:ssm:REGION:ACCOUNT:parameter/NAME``).
"""

from __future__ import annotations

from collections.abc import Mapping

from cloudtrain_launch import aws
from cloudtrain_launch.errors import LaunchError


def read(references: Mapping[str, str], env: Mapping[str, str]) -> dict[str, str]:
    """Name -> value. Raises LaunchError that names the secret and what AWS said."""
    return {name: _read(f"secret {name} ({reference})", reference, env) for name, reference in references.items()}


def _read(what: str, reference: str, env: Mapping[str, str]) -> str:
    parts = reference.split(":")
    is_arn = parts[0] == "arn" and len(parts) > 5
    service = parts[2] if is_arn else "secretsmanager"
    if service not in ("secretsmanager", "ssm"):
        raise LaunchError(f"{what} is neither a secret of Secrets Manager nor a parameter of Systems Manager")
    client = aws.client(service, what, env, region=parts[3] if is_arn else "")
    try:
        if service == "ssm":
            value = client.get_parameter(Name=reference, WithDecryption=True)["Parameter"]["Value"]
        else:
            value = client.get_secret_value(SecretId=reference).get("SecretString")
    except Exception as error:  # noqa: BLE001 - botocore's errors have no common base that is worth an import
        raise LaunchError(f"{what}: {error}; the job's role must be allowed to read it") from None
    if not isinstance(value, str):
        raise LaunchError(f"{what} holds bytes (SecretBinary), not text")
    return value
