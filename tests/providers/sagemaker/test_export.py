"""The way out: AWS's own command line takes the file and the commands as they are. Nothing here reaches a network."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cloudtrain.providers import registry
from cloudtrain.providers.base import Export
from tests.local.project import require
from tests.providers.sagemaker.jobs import GPU, request_of

AWS = Path(sys.executable).with_name("aws")
ODD = {"name": "odd", "environment": {"env": {"TEXT": 'it\'s "$HOME" `x`\nä漢🙂'}}, "tags": {"Größe": "10 m²"}}


@pytest.fixture(scope="module", autouse=True)
def _awscli() -> None:
    require(AWS.exists(), "needs awscli, which checks parameters before it sends anything")


def exported(folder: Path, **changes: object) -> Export:
    export = registry.export(request_of(GPU, **changes))
    for name, text in export.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return export


def run(command: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """One command of the export, without an account: credentials are made up, and no file of the user's is read."""
    words = shlex.split(command)
    assert words[0] == "aws"
    nowhere = str(folder / "nowhere")
    env = {
        "PATH": os.environ["PATH"],
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_CONFIG_FILE": nowhere,
        "AWS_SHARED_CREDENTIALS_FILE": nowhere,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    return subprocess.run(
        [str(AWS), *words[1:], *more], cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("changes", [{}, ODD], ids=["plain", "odd"])
def test_the_command_line_accepts_the_request(tmp_path: Path, changes: dict[str, object]) -> None:
    export = exported(tmp_path, **changes)
    done = run(export.commands[-1], tmp_path, "--generate-cli-skeleton", "output")
    assert done.returncode == 0, done.stderr
    assert "TrainingJobArn" in done.stdout


def test_the_command_line_would_have_refused_a_wrong_one(tmp_path: Path) -> None:
    export = exported(tmp_path)
    (name,) = export.files
    native = json.loads(export.files[name])
    native["ResourceConfig"]["InstanceCount"] = "two"
    (tmp_path / name).write_text(json.dumps(native), encoding="utf-8")
    done = run(export.commands[-1], tmp_path, "--generate-cli-skeleton", "output")
    assert done.returncode != 0
    assert "ResourceConfig.InstanceCount" in done.stderr


def test_what_ships_is_copied_to_where_the_channels_look(tmp_path: Path) -> None:
    for file in ("code/launch.py", "code/code.tar.gz", "spec/spec.json"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("x")
    export = exported(tmp_path)
    native = json.loads(export.files["create-training-job.json"])
    code, spec = (channel["DataSource"]["S3DataSource"]["S3Uri"] for channel in native["InputDataConfig"])
    told = "".join(run(command, tmp_path, "--dryrun").stdout for command in export.commands[:-1])
    assert sorted(line.rpartition(" to ")[2] for line in told.splitlines()) == sorted(
        [f"{code}launch.py", f"{code}code.tar.gz", f"{spec}spec.json"]
    )


def test_the_file_is_the_request(tmp_path: Path) -> None:
    request = request_of(GPU, **ODD)
    export = registry.export(request)
    assert json.loads(export.files["create-training-job.json"]) == request.native
    assert all("--region eu-west-1" in command for command in export.commands)
