"""The templates do what their READMEs say, on real processes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from tests.entrypoints.job.ranks import ENTRYPOINTS, Ranks, clean_environment, job_environment, json_lines

TEMPLATES = ENTRYPOINTS.parent / "templates"
TRAIN_DDP = ENTRYPOINTS / "train_ddp.py"


def job(template: str) -> tuple[dict[str, Any], list[str]]:
    """A template's job file, and its args as the launcher gives them."""
    found: dict[str, Any] = yaml.safe_load((TEMPLATES / template / "job.yaml").read_text())
    return found, [text for name, value in found["args"].items() for text in (f"--{name}", str(value))]


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The template with its data."""
    folder = tmp_path_factory.mktemp("digits")
    shutil.copytree(
        TEMPLATES / "digits", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("data", ".cloudtrain")
    )
    assert "1437 images to train on, 360 to test with" in prepare(folder)
    return folder


def prepare(folder: Path) -> str:
    command = [sys.executable, folder / "prepare.py"]
    return subprocess.run(command, env=clean_environment(), capture_output=True, text=True, check=True).stdout


def test_digits_data_is_the_whole_set_split_once(digits: Path) -> None:
    from sklearn.datasets import load_digits

    file = digits / "data" / "digits.pt"
    before = file.stat().st_mtime_ns
    assert "is there already" in prepare(digits)
    assert file.stat().st_mtime_ns == before
    sets = torch.load(file, weights_only=True)
    assert {name: tuple(images.shape) for name, (images, _) in sets.items()} == {
        "train": (1437, 1, 8, 8),
        "test": (360, 1, 8, 8),
    }
    pixels, labels = load_digits(return_X_y=True)
    source = sorted((*row, label) for row, label in zip((pixels / 16).tolist(), labels.tolist(), strict=True))
    ours = [
        (*image, label)
        for images, classes in sets.values()
        for image, label in zip(images.flatten(1).tolist(), classes.tolist(), strict=True)
    ]
    assert sorted(ours) == source
    assert sets["test"][1].bincount().min() >= 34


def test_digits_on_2x2_reaches_97_percent_of_360(ranks: Ranks, digits: Path, tmp_path: Path) -> None:
    told, args = job("digits")
    assert told["resources"] == {"nodes": 2, "processes_per_node": 2}
    env = {"CLOUDTRAIN_DATA_TRAIN": str(digits / told["data"]["train"]["uri"]["local"])}
    task = str(digits / told["task"])
    ended = ranks.run(TRAIN_DDP, "--task", task, *args, world=4, folder=tmp_path, env=env).succeeded()
    found = re.search(r"^test accuracy: (\S+) % \((\d+) of 360, each counted once\)$", ended.outputs[0], re.MULTILINE)
    assert found is not None, ended.outputs[0]
    assert float(found[1]) >= 97
    assert float(found[1]) == pytest.approx(int(found[2]) / 3.6, abs=0.01)
    last = json_lines(tmp_path / "metrics" / "rank-0.jsonl")[-1]
    assert (last["test_samples"], last["final"]) == (360, True)
    assert correct(digits, tmp_path / "model" / "model.pt") == int(found[2])


def correct(digits: Path, weights: Path) -> int:
    """Test images that the written model gets right in plain PyTorch, without any of the loop."""
    program = (
        "import sys, torch; sys.path.insert(0, sys.argv[1]); from tasks import Digits\n"
        "model = Digits().model(); model.load_state_dict(torch.load(sys.argv[3], weights_only=True))\n"
        "images, labels = torch.load(sys.argv[2], weights_only=True)['test']\n"
        "print((model.eval()(images).argmax(1) == labels).sum().item())\n"
    )
    command = [sys.executable, "-c", program, digits, digits / "data" / "digits.pt", weights]
    env = {**clean_environment(), "PYTHONPATH": str(ENTRYPOINTS)}
    return int(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)


def test_digits_without_data_says_what_to_do(ranks: Ranks, tmp_path: Path) -> None:
    env = {"CLOUDTRAIN_DATA_TRAIN": str(tmp_path)}
    task = f"{TEMPLATES / 'digits' / 'tasks.py'}:Digits"
    ended = ranks.run(TRAIN_DDP, "--task", task, world=1, folder=tmp_path, env=env)
    assert ended.codes == [2]
    assert ended.output == f"train_ddp.py: there is no {tmp_path / 'digits.pt'}: run `python prepare.py` first\n"


def test_digits_under_torchrun_itself(digits: Path, tmp_path: Path) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    env = {**clean_environment(), **job_environment(tmp_path), "OMP_NUM_THREADS": "1"}
    env["CLOUDTRAIN_DATA_TRAIN"] = str(digits / "data")
    command = [*torchrun, TRAIN_DDP, "--task", "tasks.py:Digits", "--epochs", "1", "--num-workers", "1"]
    ended = subprocess.run(command, cwd=digits, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "of 360, each counted once" in ended.stdout


@pytest.mark.parametrize("world", [1, 2, 4])
def test_script(ranks: Ranks, tmp_path: Path, world: int) -> None:
    told, args = job("script")
    script = TEMPLATES / "script" / told["entry"]
    assert "cloudtrain_job" not in script.read_text()
    ended = ranks.run(script, *args, world=world, folder=tmp_path).succeeded()
    found = re.search(r"^test accuracy: (\S+)% \(\d+ of 1001\)$", ended.outputs[0], re.MULTILINE)
    assert found is not None and float(found[1]) >= 97
    assert (tmp_path / "model" / "model.pt").is_file()


@pytest.mark.parametrize("template", ["digits", "script"])
def test_the_readme_begins_with_a_sentence_to_list(template: str) -> None:
    title, _, rest = (TEMPLATES / template / "README.md").read_text().partition("\n\n")
    assert title == f"# {template}"
    assert 20 < len(rest.replace("\n", " ").split(". ")[0]) < 130
