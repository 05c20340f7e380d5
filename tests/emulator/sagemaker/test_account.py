"""The account that an emulator is: what leads to it, what is in it, and that it is nobody else's."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cloudtrain.emulator.base import Clock, Site
from cloudtrain.emulator.faults import Faults
from cloudtrain.emulator.sagemaker.plane import open_plane
from cloudtrain.emulator.web import Server
from cloudtrain.errors import SpecError
from tests.emulator.sagemaker.aws import BUCKET, Aws, Processes, opened

ASKS = """
import json, boto3
print(json.dumps({
    "buckets": [bucket["Name"] for bucket in boto3.client("s3").list_buckets()["Buckets"]],
    "region": boto3.client("s3").meta.region_name,
    "jobs": boto3.client("sagemaker").list_training_jobs()["TrainingJobSummaries"],
    "account": boto3.client("sts").get_caller_identity()["Account"],
    "groups": boto3.client("logs").describe_log_groups()["logGroups"],
}))
"""


@contextlib.contextmanager
def _plane(folder: Path) -> Iterator[Mapping[str, str]]:
    """A plane that nobody has used yet: its variables."""
    folder.mkdir()
    plane = open_plane(Site(folder, Clock(1000.0), Faults.none(), Processes))
    server = Server(plane, Faults.none(), "sagemaker")
    try:
        yield plane.opened(server.url)
    finally:
        server.close()
        plane.close()


def _asked(environ: Mapping[str, str]) -> dict[str, Any]:
    """What AWS's own client finds in that environment."""
    command = [sys.executable, "-c", ASKS]
    asked = subprocess.run(command, env=dict(environ), check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(asked.stdout)
    return found


def test_the_variables_lead_there_whatever_else_a_shell_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text("[profile work]\nregion = ap-south-1\nendpoint_url = http://192.0.2.1\n")
    shell = {
        "AWS_PROFILE": "work",
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_SESSION_TOKEN": "old",
        "AWS_ENDPOINT_URL_S3": "http://192.0.2.1",
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
    }
    for name, value in shell.items():
        monkeypatch.setenv(name, value)
    with _plane(tmp_path / "site") as variables:
        found = _asked({**os.environ, **variables})
    assert found["buckets"] == ["cloudtrain-emulator"]
    assert (found["jobs"], found["groups"], found["region"]) == ([], [], "us-east-1")
    assert variables["CLOUDTRAIN_SAGEMAKER_REGION"] == "us-east-1"
    assert variables["CLOUDTRAIN_SAGEMAKER_BUCKET"] == "cloudtrain-emulator"
    assert variables["CLOUDTRAIN_SAGEMAKER_ROLE"] == f"arn:aws:iam::{found['account']}:role/cloudtrain-emulator"


def test_settings_that_a_user_has_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cloudtrain.toml").write_text('[sagemaker]\nregion = "eu-west-1"\nbucket = "my-own"\n')
    monkeypatch.setenv("CLOUDTRAIN_SAGEMAKER_ROLE", "arn:aws:iam::123456789012:role/Mine")
    with _plane(tmp_path / "site") as variables:
        assert [name for name in variables if name.startswith("CLOUDTRAIN_")] == []
        assert _asked({**os.environ, **variables})["buckets"] == ["my-own"]
        assert variables["AWS_DEFAULT_REGION"] == "eu-west-1"


def test_a_bucket_that_cannot_be_is_the_users_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDTRAIN_SAGEMAKER_BUCKET", "x")
    with pytest.raises(SpecError, match=r"sagemaker\.bucket: x cannot be made"), _plane(tmp_path / "site"):
        pass


def test_two_emulators_of_one_process_have_nothing_in_common(aws: Aws, tmp_path: Path) -> None:
    aws.put("mine", "one")
    aws.sagemaker.list_training_jobs()  # so that its connections, each a thread there, are open before
    with opened(tmp_path) as other:
        other.put("mine", "other")
        other.end(other.submit("elsewhere", "print('hello')"))
        assert other.keys() == ["elsewhere/code/program.py", "mine"]
        assert (aws.read("mine"), other.read("mine")) == (b"one", b"other")
        assert aws.sagemaker.list_training_jobs(NameContains="elsewhere")["TrainingJobSummaries"] == []
    assert aws.read("mine") == b"one"
    assert BUCKET in [bucket["Name"] for bucket in aws.s3.list_buckets()["Buckets"]]
