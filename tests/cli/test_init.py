"""cloudtrain init: a new folder from a template, whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cloudtrain import shipped, starting_points
from cloudtrain.errors import MissingError
from tests.cli.running import cloudtrain

TEMPLATES = sorted(path.parent.name for path in shipped.templates().glob("*/job.yaml"))


LEFTOVERS = {"__pycache__", ".cloudtrain", "data", "out"}  # what preparing and running a template leaves in a checkout


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not LEFTOVERS & set(path.relative_to(folder).parts)
    }


def test_the_templates_of_the_contract_are_there() -> None:
    assert {"digits", "script"} <= set(TEMPLATES)


def test_the_list_names_and_describes_every_template() -> None:
    shown = cloudtrain("init", "--list")
    listed = json.loads(cloudtrain("init", "--list", "--json").stdout)
    assert [item["name"] for item in listed] == TEMPLATES
    assert [line.split()[0] for line in shown.stdout.splitlines()] == TEMPLATES
    assert all(item["description"] and "\n" not in item["description"] for item in listed)


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_is_copied_whole_and_is_valid(tmp_path: Path, template: str) -> None:
    done = cloudtrain("init", "--template", template, "new", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert files(tmp_path / "new") == files(shipped.templates() / template)
    assert not LEFTOVERS & {path.name for path in (tmp_path / "new").rglob("*")}
    assert done.stdout.splitlines()[1] == "  cd new"
    assert cloudtrain("validate", "job.yaml", cwd=tmp_path / "new").returncode == 0


def test_an_empty_folder_will_do_and_so_will_the_current_one(tmp_path: Path) -> None:
    done = cloudtrain("init", ".", cwd=tmp_path)
    assert done.returncode == 0
    assert "cd " not in done.stdout
    assert files(tmp_path) == files(shipped.templates() / "digits")


def test_parents_are_made_and_names_are_quoted(tmp_path: Path) -> None:
    done = cloudtrain("init", "--json", "a/my job", cwd=tmp_path)
    assert json.loads(done.stdout)["next"][0] == ("cd 'a/my job'" if os.name == "posix" else 'cd "a/my job"')
    assert (tmp_path / "a" / "my job" / "job.yaml").is_file()


def test_what_is_in_the_way_is_named_and_kept(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("x")
    done = cloudtrain("init", "full", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "full is not empty: it holds mine.txt" in done.stderr
    assert files(tmp_path) == {"full/mine.txt": b"x"}
    done = cloudtrain("init", "full/mine.txt", cwd=tmp_path)
    assert done.returncode == 2
    assert "is already there and is not a folder" in done.stderr


def test_an_unknown_template(tmp_path: Path) -> None:
    done = cloudtrain("init", "-t", "digit", "new", cwd=tmp_path)
    assert done.returncode == 2
    assert "no template 'digit', did you mean 'digits'?" in done.stderr
    assert list(tmp_path.iterdir()) == []
    assert cloudtrain("init", cwd=tmp_path).returncode == 2


def test_a_failed_copy_leaves_nothing(tmp_path: Path) -> None:
    too_long = tmp_path / "made" / ("x" * 250) / ("y" * 300)  # no file system takes the last name
    with pytest.raises(MissingError, match="cannot write"):
        starting_points.create("digits", too_long)
    assert list(tmp_path.iterdir()) == []
