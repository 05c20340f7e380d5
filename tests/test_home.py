"""Where things that outlive a project lie."""

from __future__ import annotations

import stat
from pathlib import Path

import platformdirs
import pytest

from cloudtrain.bundle import scan
from cloudtrain.errors import MissingError
from cloudtrain.home import home, home_folder


def test_the_variable_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDTRAIN_HOME", str(tmp_path / "mine"))
    assert home() == tmp_path / "mine"
    assert not home().exists()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOUDTRAIN_HOME", "relative")
    assert home() == tmp_path / "relative"


def test_without_it_the_users_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDTRAIN_HOME", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home().is_relative_to(tmp_path)
    assert home().name == "cloudtrain"


@pytest.mark.parametrize("variables", [{"HOME": "/h"}, {"HOME": "/h", "XDG_DATA_HOME": "/data"}, {"HOME": "/h/"}, {}])
def test_it_is_where_platformdirs_has_it(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name in ("CLOUDTRAIN_HOME", "HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert home() == platformdirs.user_data_path("cloudtrain", appauthor=False)


def test_folders_in_it_are_for_the_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDTRAIN_HOME", str(tmp_path / "not" / "yet" / "there"))
    made = home_folder("cache", "bundle")
    assert made == home() / "cache" / "bundle"
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (made, made.parent, home())} == {0o700}
    assert home_folder("cache", "bundle") == made


def test_a_home_inside_a_project_does_not_ship(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").touch()
    monkeypatch.setenv("CLOUDTRAIN_HOME", str(tmp_path / "home"))
    (home_folder("cache") / "known").touch()
    assert [file.path for file in scan(tmp_path).files] == ["train.py"]


def test_a_file_in_the_place_of_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CLOUDTRAIN_HOME", str(tmp_path / "file"))
    with pytest.raises(MissingError, match="cannot make"):
        home_folder()


def test_a_home_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CLOUDTRAIN_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(MissingError, match="cannot make"):
        home_folder()
