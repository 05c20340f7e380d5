"""cloudtrain render: what it prints and writes, where, how it exits, and what it leaves alone."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

import cloudtrain as ct
from tests.cli.running import cloudtrain

PROVIDERS = ("sagemaker", "vertex", "azureml")
JOB = "name: digits\nentry: train.py\n"
RECORDER = """#!{python}
import json, os, sys
with open({log!r}, "a") as log:
    log.write(json.dumps([os.path.basename(sys.argv[0]), os.getcwd(), sys.argv[1:]]) + "\\n")
"""


def project(folder: Path, text: str = JOB) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.py").touch()
    file = folder / "job.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def exported(file: Path, out: Path, provider: str = "sagemaker") -> subprocess.CompletedProcess[str]:
    return cloudtrain("render", file, "--provider", provider, "-o", "cli", "--out", out, "--quiet")


# What is printed


@pytest.mark.parametrize("provider", PROVIDERS)
def test_yaml_is_the_json_to_old_and_new_readers_and_plain_ascii(tmp_path: Path, provider: str) -> None:
    odd = [
        "1e3",
        "0o17",
        "017",
        "yes",
        "y",
        "1_000",
        "12:30:45",
        "0x1F",
        ".5",
        "=",
        "<<",
        "2020-01-01",
        "é",
        "a\nb",
        "{",
    ]
    env = {f"V{number}": text for number, text in enumerate(odd)}
    file = project(tmp_path, JOB + f"environment: {{env: {json.dumps(env)}}}\n")
    as_json = cloudtrain("render", file, "--provider", provider, "--quiet").stdout
    as_yaml = cloudtrain("render", file, "--provider", provider, "--quiet", "-o", "yaml").stdout
    assert yaml.safe_load(as_yaml) == json.loads(as_json)  # a reader of YAML 1.1
    assert as_yaml.isascii()
    for text in ("1e3", "0o17", "y"):  # numbers and a switch to readers of 1.2, or of all of 1.1
        assert f'"{text}"\n' in as_yaml


def test_all_shows_what_overrides_get_wrong(tmp_path: Path) -> None:
    file = project(tmp_path, JOB + "overrides: {azureml: {resources: {instance_typ: x}}}\n")
    report = json.loads(cloudtrain("render", file, "--all", "--json").stdout)
    assert "request" in report["sagemaker"]
    assert "request" in report["vertex"]
    assert [problem["key"] for problem in report["azureml"]["problems"]] == ["overrides.azureml.resources.instance_typ"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"provider": None}, "unknown provider None"),
        ({"provider": "SageMaker"}, "did you mean 'sagemaker'?"),
        ({"attempt": 0}, "attempt must be a whole number from 1"),
        ({"attempt": "1"}, "attempt must be a whole number from 1"),
        ({"attempt": True}, "attempt must be a whole number from 1"),
        ({"settings": "region=eu-west-1"}, "settings must be a mapping"),
    ],
)
def test_what_python_gives_wrong_is_said(tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ct.SpecError, match=re.escape(said)):
        ct.render(project(tmp_path), **{"provider": "sagemaker", **wrong})


# Where it is written


def test_a_folder_with_a_script_of_the_users_own_is_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "submit.sh").write_text("sbatch train.sbatch\n")
    (out / "results.csv").write_text("precious\n")
    done = exported(project(tmp_path / "p"), out)
    assert done.returncode == 2
    assert f"{out} holds what no earlier export has written: results.csv, submit.sh" in done.stderr
    assert (out / "results.csv").read_text() == "precious\n"


def test_what_was_added_to_an_export_keeps_it_from_being_replaced(tmp_path: Path) -> None:
    file, out = project(tmp_path / "p"), tmp_path / "out"
    assert exported(file, out).returncode == 0
    (out / "notes.txt").touch()
    done = exported(file, out)
    assert (done.returncode, "notes.txt" in done.stderr) == (2, True)
    (out / "notes.txt").unlink()
    assert exported(file, out, "azureml").returncode == 0  # another provider's files replace the first one's
    assert sorted(path.name for path in out.iterdir()) == ["code", "job.yml", "spec", "submit.sh"]


def test_an_empty_folder_is_filled_even_if_it_is_the_current_one(tmp_path: Path) -> None:
    file, out = project(tmp_path / "p"), tmp_path / "out"
    out.mkdir()
    done = cloudtrain("render", file, "--provider", "sagemaker", "-o", "cli", "--out", ".", "--quiet", cwd=out)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in out.iterdir()) == ["code", "create-training-job.json", "spec", "submit.sh"]
    again = cloudtrain("render", file, "--provider", "sagemaker", "-o", "cli", "--out", ".", "--quiet", cwd=out)
    assert again.returncode == 3
    assert "give --out a folder that is not there yet" in again.stderr


@pytest.mark.parametrize("out", ["a" * 300, "a/" * 3000, "loop/x", "train.py/x"])
def test_a_place_that_cannot_be_is_said(tmp_path: Path, out: str) -> None:
    file = project(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / ".cloudtrainignore").write_text("*\n!train.py\n")
    done = exported(file, tmp_path / out)
    assert (done.returncode, "cannot be written" in done.stderr) == (3, True)


def test_nothing_of_an_export_into_the_code_folder_ships(tmp_path: Path) -> None:
    file = project(tmp_path)
    assert exported(file, tmp_path / "way-out").returncode == 2
    (tmp_path / ".cloudtrainignore").write_text("way-out/\n")
    before = json.loads(cloudtrain("bundle", file, "--json").stdout)["digest"]
    assert exported(file, tmp_path / "way-out").returncode == 0
    assert exported(file, tmp_path / "way-out").returncode == 0
    assert json.loads(cloudtrain("bundle", file, "--json").stdout)["digest"] == before
    assert {path.name for path in tmp_path.iterdir()} - {".cloudtrain"} == {
        ".cloudtrainignore", "job.yaml", "train.py", "way-out",
    }  # fmt: skip


def test_a_kill_at_any_moment_leaves_the_earlier_export_or_the_new_one(tmp_path: Path) -> None:
    file, out = project(tmp_path / "p"), tmp_path / "out"
    began = time.monotonic()
    assert exported(file, out).returncode == 0
    took = time.monotonic() - began
    parts = sorted(path.relative_to(out) for path in out.rglob("*"))
    code = "from cloudtrain.cli import main; main()"
    for share in (0.5, 0.7, 0.8, 0.9, 1.0):
        command = ["render", str(file), "--provider", "sagemaker", "-o", "cli", "--out", str(out), "--attempt", "2"]
        process = subprocess.Popen(
            [sys.executable, "-c", code, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(took * share)
        process.kill()
        process.wait()
        assert sorted(path.relative_to(out) for path in out.rglob("*")) == parts
    assert exported(file, out).returncode == 0


def test_several_at_once_leave_a_whole_one(tmp_path: Path) -> None:
    file, out = project(tmp_path / "p"), tmp_path / "out"
    code = "from cloudtrain.cli import main; main()"
    command = ["render", str(file), "--provider", "sagemaker", "-o", "cli", "--out", str(out), "--quiet"]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    ends = [(process.communicate(timeout=120)[1], process.returncode) for process in processes]
    assert ends == [("", 0)] * 4
    assert sorted(path.name for path in out.iterdir()) == ["code", "create-training-job.json", "spec", "submit.sh"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "p"]


# What submit.sh runs


NAMES = ("a b", 'it\'s "so"', "$HOME `x` $(x)", "new\nline", "end\n", "-n", "ünï;&|", "*")


@pytest.mark.parametrize(
    ("provider", "name"), [*(("sagemaker", name) for name in NAMES), ("vertex", "new\nline"), ("azureml", "new\nline")]
)
def test_the_script_runs_the_commands_in_its_folder_wherever_it_is(tmp_path: Path, provider: str, name: str) -> None:
    out, tools, decoy = tmp_path / "here" / name, tmp_path / "tools", tmp_path / "decoy" / name
    tools.mkdir()
    decoy.mkdir(parents=True)
    log = tmp_path / "log"
    for tool in ("aws", "gcloud", "az"):
        (tools / tool).write_text(RECORDER.format(python=sys.executable, log=str(log)))
        (tools / tool).chmod(0o755)
    file = project(tmp_path / "p")
    done = cloudtrain("render", file, "--provider", provider, "-o", "cli", "--out", out, "--json")
    commands = [command.replace("\\\n", "") for command in json.loads(done.stdout)["commands"]]
    env = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "CDPATH": str(decoy.parent)}
    script = "./-n/submit.sh" if name == "-n" else f"{name}/submit.sh"
    subprocess.run(["/bin/sh", script], cwd=out.parent, env=env, check=True, timeout=60)
    ran = [json.loads(line) for line in log.read_text().splitlines()]
    assert [[tool, *argv] for tool, _, argv in ran] == [shlex.split(command) for command in commands]
    assert {folder for _, folder, _ in ran} == {str(out.resolve())}
