"""What the account settings give a request: role, network and keys, and whether they belong together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudtrain.settings import Settings
    from cloudtrain.spec.problems import Path

ACCOUNT = ("region",)
"""The settings that ``Request.account`` holds."""
STORE = "s3://{bucket}/{prefix}"
"""The folder under which cloudtrain keeps all."""

_LISTS = {"subnets": ("Subnets", 16), "security_groups": ("SecurityGroupIds", 5)}
_LONGEST_ID = 32
_KEY = r"[a-zA-Z0-9:/_-]{1,2048}"
_KEY_ARN = r"arn:aws[a-z-]*:kms:(?P<region>[a-z0-9-]+):.*"
_PARTITIONS = {
    "cn-": "aws-cn",
    "us-gov-": "aws-us-gov",
    "us-iso-": "aws-iso",
    "us-isob-": "aws-iso-b",
    "us-isof-": "aws-iso-f",
    "eu-isoe-": "aws-iso-e",
    "eusc-": "aws-eusc",
}


def vpc_of(settings: Settings) -> dict[str, list[str]]:
    """VpcConfig; nothing where the job runs in SageMaker's own network."""
    found = {field: settings[name].split(",") for name, (field, _) in _LISTS.items() if settings[name]}
    return dict(sorted(found.items()))


def partition_of(region: str) -> str:
    """The part of AWS that a region belongs to, as ARNs begin."""
    return next((name for start, name in _PARTITIONS.items() if region.startswith(start)), "aws")


def account_problems(settings: Settings) -> Iterator[tuple[Path, str]]:
    """Settings that do not fit one another, or that the service refuses."""
    for text in (*_network(settings), *_role(settings), *_key(settings)):
        yield (), f"setting sagemaker.{text}"


def account_notes(settings: Settings, nodes: int, rdma: str) -> Iterator[str]:
    """What no request can make sure of."""
    if settings["subnets"] and nodes > 1:
        group = "traffic from and to itself" if rdma else "traffic from itself"
        yield f"sagemaker.security_groups: nodes reach each other only if the group allows {group}"


def _network(settings: Settings) -> Iterator[str]:
    given = [name for name in _LISTS if settings[name]]
    if len(given) == 1:
        (missing,) = _LISTS.keys() - set(given)
        yield f"{missing}: is needed beside {given[0]}; SageMaker takes both or none"
    for name in given:
        ids, (_, most) = settings[name].split(","), _LISTS[name]
        if len(ids) > most:
            yield f"{name}: {len(ids)} given, at most {most}"
        for one in ids:
            if len(one) > _LONGEST_ID:
                yield f"{name}: {one} has {len(one)} characters, at most {_LONGEST_ID}"


def _role(settings: Settings) -> Iterator[str]:
    partition, region = settings["role"].split(":")[1], settings["region"]
    if "role" not in settings.missing and partition != partition_of(region):
        yield f"role: is of {partition}, and {region} belongs to {partition_of(region)}"


def _key(settings: Settings) -> Iterator[str]:
    key, region = settings["kms_key"], settings["region"]
    if not key:
        return
    if not re.fullmatch(_KEY, key):
        yield "kms_key: must be a key's id or ARN, at most 2048 characters of a-z A-Z 0-9 : / _ -"
    if (arn := re.fullmatch(_KEY_ARN, key)) and arn["region"] != region:
        yield f"kms_key: is a key of {arn['region']}, and the job runs in {region}"
