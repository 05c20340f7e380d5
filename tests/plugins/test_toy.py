"""A provider of another package is used as ours are; that it passes what ours pass is in tests/conformance."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.backend import LIMIT_SECONDS, Backend, Result, job_file

WAITS = """
import time
print("begun", flush=True)
time.sleep(600)
"""
TWICE = """
import os
from pathlib import Path

seen = Path(os.environ["CLOUDTRAIN_CHECKPOINT_DIR"], "seen")
if os.environ["RANK"] == "0" and not seen.exists():
    seen.write_text("")
    raise SystemExit(3)
Path(os.environ["CLOUDTRAIN_OUTPUT_REPORT"], f"rank-{os.environ['RANK']}").write_text(os.environ["CLOUDTRAIN_ATTEMPT"])
"""


def _problems(result: Result) -> list[str]:
    assert result.code == 2, result.err
    return [problem["message"] for problem in result.json["problems"]]


def test_a_job_that_is_stopped(toy: Backend, tmp_path: Path) -> None:
    job = job_file(tmp_path / "job", WAITS)
    begun = toy.cloudtrain("submit", job, "--provider", "toy", "--quiet")
    assert begun.code == 0, begun.err
    run_id = begun.out.strip()
    end = time.monotonic() + LIMIT_SECONDS
    while "begun" not in toy.cloudtrain("logs", run_id).out:
        assert time.monotonic() < end
        time.sleep(0.1)
    again = toy.cloudtrain("submit", job, "--provider", "toy", "--quiet")
    assert again.out.strip() == run_id
    assert toy.cloudtrain("stop", run_id, "--wait").code == 0
    status = toy.cloudtrain("status", run_id, "--json").json
    assert (status["state"], status["vendor_state"]) == ("STOPPED", "Halted")


def test_a_job_that_fails_and_is_gone_on_with(toy: Backend, tmp_path: Path) -> None:
    fields: dict[str, Any] = {"outputs": {"report": {"local": "report"}}}
    job = job_file(tmp_path / "job", TWICE, **fields)
    ended = toy.cloudtrain("submit", job, "--provider", "toy", "--follow", "--json")
    assert ended.code == 1, ended.err
    status = ended.json
    assert (status["state"], status["cause"]) == ("FAILED", "user-code")
    resumed = toy.cloudtrain("resume", status["run_id"], "--follow", "--json")
    assert resumed.code == 0, resumed.err
    assert resumed.json["attempt"] == 2
    done = toy.cloudtrain("download", status["run_id"], "--to", tmp_path / "got", "--only", "outputs/report")
    assert done.code == 0, done.err
    assert {file.name: file.read_text() for file in (tmp_path / "got/outputs/report").iterdir()} == {
        "rank-0": "2",
        "rank-1": "2",
    }


def test_a_job_file_may_name_it(toy: Backend, tmp_path: Path) -> None:
    """Where a job says something for each provider, and in its overrides."""
    fields = {"outputs": {"report": {"toy": "file:///tmp/report", "vertex": "gs://b/r"}}, "overrides": {"toy": {}}}
    job = job_file(tmp_path / "job", "", **fields)
    shown = toy.cloudtrain("render", job, "--provider", "toy").json
    assert shown["variables"]["CLOUDTRAIN_OUTPUT_REPORT"] == "/tmp/report"
    assert toy.cloudtrain("validate", job, "--provider", "toy").code == 0


def test_a_misspelt_one_is_told(toy: Backend, tmp_path: Path) -> None:
    job = job_file(tmp_path / "job", "", outputs={"report": {"toi": "file:///tmp/report"}})
    assert _problems(toy.cloudtrain("validate", job, "--json")) == ["unknown provider, did you mean 'toy'?"]
    job = job_file(tmp_path / "job", "", overrides={"tou": {}})
    assert _problems(toy.cloudtrain("validate", job, "--json")) == ["unknown provider, did you mean 'toy'?"]
    asked = toy.cloudtrain("render", job_file(tmp_path / "job", ""), "--provider", "toyy")
    assert (asked.code, asked.err) == (2, "cloudtrain: unknown provider 'toyy', did you mean 'toy'?\n")


def test_it_says_what_it_cannot_do(toy: Backend, tmp_path: Path) -> None:
    job = job_file(tmp_path / "job", "", spot={"enabled": True}, resources={"nodes": 9})
    refused = _problems(toy.cloudtrain("validate", job, "--provider", "toy", "--json"))
    assert refused == ["a toy never takes a machine away; leave it out"]
    job = job_file(tmp_path / "job", "", resources={"nodes": 9})
    assert _problems(toy.cloudtrain("validate", job, "--provider", "toy", "--json")) == [
        "toy request: nodes: must be 1 to 8, not 9"
    ]


def test_it_has_settings_of_its_own(toy: Backend, tmp_path: Path) -> None:
    """From the file, from a variable and from the command line, each before the one named first."""
    job = job_file(tmp_path / "job", "")
    (tmp_path / "job/cloudtrain.toml").write_text('[toy]\nfolder = "/from-file"\n')
    variable = toy.env.pop("CLOUDTRAIN_TOY_FOLDER")

    def folder(*words: str) -> str:
        shown = toy.cloudtrain("render", job, "--provider", "toy", *words)
        assert shown.code == 0, shown.err
        return str(shown.json["code"]).rpartition("/code/")[0]

    assert folder() == "/from-file"
    assert folder("--set", "folder=/given") == folder("--set", "toy.folder=/given") == "/given"
    toy.env["CLOUDTRAIN_TOY_FOLDER"] = variable
    assert folder() == variable


@pytest.mark.parametrize(
    ("toml", "words", "message"),
    [
        ('[toy]\nfolder = "here"', [], "toml: toy.folder: 'here' is no absolute path of the folder that is the cloud"),
        ('[toy]\nfolden = "/x"', [], "toml: toy.folden: unknown setting, did you mean 'folder'?"),
        ('[toi]\nfolder = "/x"', [], "toml: unknown section [toi], did you mean 'toy'?"),
        ("", ["--set", "tou.folder=/x"], "--set tou.folder: unknown section, did you mean 'toy'?"),
    ],
)
def test_its_settings_are_checked(toy: Backend, tmp_path: Path, toml: str, words: list[str], message: str) -> None:
    job = job_file(tmp_path / "job", "")
    (tmp_path / "job/cloudtrain.toml").write_text(toml)
    shown = toy.cloudtrain("render", job, "--provider", "toy", *words)
    assert shown.code == 2
    assert message in shown.err


def test_settings_that_nobody_gave(toy: Backend, tmp_path: Path) -> None:
    del toy.env["CLOUDTRAIN_TOY_FOLDER"]
    sent = toy.cloudtrain("submit", job_file(tmp_path / "job", ""), "--provider", "toy")
    assert sent.code == 3
    assert "cloudtrain: not set: toy.folder\n" in sent.err
    asked = toy.cloudtrain("status", "toy:small-1")
    assert (asked.code, asked.err.splitlines()[0]) == (3, "cloudtrain: not set: toy.folder")


def test_there_is_no_way_out_without_an_export(toy: Backend, tmp_path: Path) -> None:
    job = job_file(tmp_path / "job", "")
    shown = toy.cloudtrain("render", job, "--provider", "toy", "-o", "cli", "--out", tmp_path / "out")
    assert shown.code == 2
    assert "toy has no command line of its own that the package cloudtrain-toy 1.0 knows" in shown.err


def test_only_ours_are_emulated(toy: Backend) -> None:
    asked = toy.cloudtrain("emulate", "--provider", "toy", "--", "true")
    assert asked.code == 2
    assert "toy" in asked.err
    assert "Traceback" not in asked.err


def test_nothing_is_looked_for_where_it_is_not_asked_for(toy: Backend, tmp_path: Path) -> None:
    """A command for one of ours looks at no package's entry points, whatever is installed."""
    job = job_file(tmp_path / "job", "")
    command = [sys.executable, "-X", "importtime", "-m", "cloudtrain", "render", str(job), "--quiet", "--provider"]
    loaded = {
        provider: subprocess.run([*command, provider], env=toy.env, capture_output=True, text=True, check=True).stderr
        for provider in ("vertex", "toy")
    }
    assert "cloudtrain.plugins" in loaded["vertex"]
    assert "importlib.metadata" in loaded["toy"]
    assert "cloudtrain_toy" in loaded["toy"]
    assert "importlib.metadata" not in loaded["vertex"]
    assert "cloudtrain_toy" not in loaded["vertex"]
