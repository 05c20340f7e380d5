"""How AWS's clients find the emulator: variables, and a configuration that leads nowhere else.

A variable for one service goes before the one for all, and a user's shell may hold such. A profile that it names has to
be in the configuration, whatever that is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cloudtrain.emulator.sagemaker.clients import ACCESS_KEY, SECRET_KEY
from cloudtrain.settings import settings_for

if TYPE_CHECKING:
    from cloudtrain.settings import Settings

BUCKET = "cloudtrain-emulator"
_SERVICES = ("SAGEMAKER", "S3", "CLOUDWATCH_LOGS", "STS", "IAM", "ECR", "SECRETS_MANAGER", "SSM")
_PROFILES = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")


def account_settings(account: str) -> tuple[Settings, dict[str, str]]:
    """The settings of whoever starts the emulator here, completed, and the variables that complete them for others.
    Raises SpecError for ill-formed ones."""
    role = f"arn:aws:iam::{account}:role/cloudtrain-emulator"
    ours = {"region": "us-east-1", "role": role, "bucket": BUCKET}
    given = settings_for("sagemaker", Path())
    missing = {name: value for name, value in ours.items() if name in given.missing}
    completed = settings_for("sagemaker", Path(), given=missing)
    return completed, {f"CLOUDTRAIN_SAGEMAKER_{name.upper()}": value for name, value in missing.items()}


def for_clients(url: str, region: str, folder: Path) -> dict[str, str]:
    """For commands on this machine. ``folder`` gets a file."""
    config = folder / "aws-config"
    names = {os.environ[name] for name in _PROFILES if os.environ.get(name)}
    profiles = "".join(f"[profile {name}]\nregion = {region}\n" for name in sorted(names - {"default"}))
    config.write_text(f"[default]\nregion = {region}\n{profiles}", encoding="utf-8")
    return {
        **for_nodes(url, region),
        **{f"AWS_ENDPOINT_URL_{service}": url for service in _SERVICES},
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false",
        "AWS_SESSION_TOKEN": "",
        "AWS_CONFIG_FILE": str(config),
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


def for_nodes(url: str, region: str) -> Mapping[str, str]:
    """For containers, which have nothing else."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": region,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
