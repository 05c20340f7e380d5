"""Where the files of a run lie in S3, and where the container finds them below /opt/ml."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cloudtrain.providers import shipping
from cloudtrain.providers.places import unusable_places
from cloudtrain.spec.problems import shown

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.spec.problems import Path

SCHEME = "s3://"
LONGEST_URI = 1024
_RUN = 56
"""The name of a run, its number among the runs of the same job, and a slash."""

INPUT = "/opt/ml/input/data"
CHECKPOINTS = "/opt/ml/checkpoints"
OURS = "cloudtrain_"
"""How the names of our channels begin; launch.py takes no channel with such a name for data."""
CODE_CHANNEL = f"{OURS}code"
SPEC_CHANNEL = f"{OURS}spec"
LAUNCH = f"{INPUT}/{CODE_CHANNEL}/launch.py"
ARCHIVE = f"{INPUT}/{CODE_CHANNEL}/{shipping.ARCHIVE}"
SPEC = f"{INPUT}/{SPEC_CHANNEL}/{shipping.SPEC}"

_BUCKET = r"[A-Za-z0-9]([A-Za-z0-9._-]{,253}[A-Za-z0-9])?"  # capitals and _ are in old names of us-east-1


def folder(uri: str) -> str:
    """The URI with a slash at its end. S3 knows prefixes: ``train`` alone would match ``train2/`` and ``train.csv``."""
    return uri if uri.endswith("/") else f"{uri}/"


def place_problems(job: Job) -> Iterator[tuple[Path, str]]:
    """Data, outputs and checkpoints that have no place in S3."""
    return unusable_places(job, "sagemaker", f"{SCHEME}bucket/folder/", _flaw_of)


def place_notes(job: Job) -> Iterator[str]:
    """URIs of data that are not sent as they are written."""
    uris = {name: channel.uri_for("sagemaker") or "" for name, channel in job.data.items()}
    open_ended = [f"data.{name}.uri" for name, uri in uris.items() if not uri.endswith("/")]
    if open_ended:
        yield f"{', '.join(open_ended)}: taken as a folder, with / at its end; S3 would match every key that begins so"


def _flaw_of(uri: str, written: bool) -> str | None:
    """Why ``uri`` is no folder in S3; None if it is one. Below that of checkpoints every run has its own."""
    if not uri.startswith(SCHEME):
        return f"must be a folder in S3 such as {SCHEME}bucket/folder/, not {shown(uri)}{_file_system(uri)}"
    bucket = uri.removeprefix(SCHEME).partition("/")[0]
    if not re.fullmatch(_BUCKET, bucket):
        return f"{shown(bucket)} is no bucket: letters, digits, . _ and -, a letter or digit first and last"
    longest = LONGEST_URI - _RUN if written else LONGEST_URI
    if len(folder(uri)) > longest:
        return f"has {len(folder(uri))} characters, at most {longest}"
    return None


def _file_system(uri: str) -> str:
    if not uri.lower().startswith(("fs-", "efs:", "fsx:", "lustre:")):
        return ""
    return (
        "; a file system (EFS, FSx) is a native channel: overrides.sagemaker.InputDataConfig, and a VPC in the settings"
    )
