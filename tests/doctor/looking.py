"""`cloudtrain doctor` as a command, in an environment of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloudtrain.emulator import shell
from tests.local.project import CLOUDTRAIN

LIMIT_SECONDS = 300
SETTINGS = """
[sagemaker]
region = "eu-west-1"
# where all goes
bucket = "some-bucket"
role = "arn:aws:iam::111122223333:role/Train"

[vertex]
project = "some-project"
region = "europe-west4"
bucket = "some-bucket"

[azureml]
subscription = "00000000-0000-0000-0000-0000000000ab"
resource_group = "group"
workspace = "space"
"""


@dataclass
class Said:
    """What it said."""

    code: int
    out: str
    err: str

    @property
    def checks(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = self.report["checks"]
        return found

    @property
    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found

    def of(self, cloud: str) -> dict[str, dict[str, str]]:
        return {check["name"]: check for check in self.checks if check["of"] == cloud}

    def verdicts(self, cloud: str) -> dict[str, str]:
        """Less those of settings."""
        return {name: row["verdict"] for name, row in self.of(cloud).items() if not name.startswith("setting")}


def doctor(folder: Path, *words: str, env: Mapping[str, str], form: str = "--json") -> Said:
    """Run it. Whatever it finds, it says so in a table or JSON and nothing else."""
    done = subprocess.run(
        [CLOUDTRAIN, "doctor", *words, *([form] if form else [])], cwd=folder, env=dict(env), capture_output=True,
        text=True, timeout=LIMIT_SECONDS, check=False,
    )  # fmt: skip
    said = Said(done.returncode, done.stdout, done.stderr)
    assert said.err == ""
    assert all(letter.isprintable() or letter == "\n" for letter in said.out)
    if form:
        has_problem = any(check["verdict"] == "problem" for check in said.checks)
        assert (said.code, said.report["ok"]) == ((3, False) if has_problem else (0, True))
        assert [check for check in said.checks if check["verdict"] == "problem" and not check["next"]] == []
    return said


def alone(folder: Path, **further: str) -> dict[str, str]:
    """An environment in which no cloud is known, and from which none is looked for."""
    nowhere = folder / "nothing"
    return {
        **shell.without_real(os.environ),
        **shell.closed(nowhere),
        "AZURE_POD_IDENTITY_AUTHORITY_HOST": "http://127.0.0.1:9",  # instead of a virtual machine's own service
        "CLOUDTRAIN_HOME": str(folder / "home"),
        **further,
    }
