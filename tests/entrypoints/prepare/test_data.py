"""A node's share of the objects: disjoint and complete over the nodes, in the order of an object store."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cloudtrain_launch import objects
from cloudtrain_launch.data import bring
from cloudtrain_launch.errors import LaunchError

# In the order of S3 and Cloud Storage, which compare UTF-8 bytes: neither Python's order of paths nor of text.
KEYS = ["B/1", "a", "a-b", "a/b", "a/b.txt", "a0", "aa/x/y/z", "z", "é", "\uffee", "\U0001f600"]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    for key in KEYS:
        if key == "a":  # no disk has a file and a folder of one name
            continue
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content of {key}")
    return folder


PRESENT = [key for key in KEYS if key != "a"]


def test_keys_come_in_the_stores_order(store: Path) -> None:
    assert objects.keys(str(store)) == PRESENT == sorted(PRESENT, key=str.encode)


def test_links_are_followed_but_not_for_ever(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store"
    for key in ("a/1", "b/2", "c"):
        (store / key).parent.mkdir(parents=True, exist_ok=True)
        (store / key).write_text("x")
    links = {"here": ".", "too": ".", "a/up": "..", "a/b": "../b", "b/a": "../a", "self": "self", "gone": "nowhere"}
    for link, target in links.items():
        (store / link).symlink_to(target)
    os.mkfifo(store / "pipe")
    assert objects.keys(str(store), "data.train") == ["a/1", "a/b/2", "b/2", "b/a/1", "c"]
    said = capsys.readouterr().out
    assert said == "data.train: left out, since they are no files: 'gone', 'pipe', 'self'\n"


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("nodes", [1, 2, 3, 12])
def test_shares(copy: bool, nodes: int, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shares = []
    for node in range(nodes):
        target = tmp_path / f"node-{node}"
        bring("data.train", str(store), str(target), (node, nodes), copy=copy)
        shares.append(objects.keys(str(target)))
        for key in shares[-1]:
            assert (target / key).read_text() == f"content of {key}"
            assert (target / key).is_symlink() is not copy
    assert shares == [PRESENT[node::nodes] for node in range(nodes)]
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"data.train: {len(shares[0])} of 10 objects, ")
    assert len(said) == nodes


def test_a_single_object_becomes_a_folder_with_it(tmp_path: Path) -> None:
    (tmp_path / "digits.npz").write_text("x")
    bring("data.train", str(tmp_path / "digits.npz"), str(tmp_path / "here"), (0, 1), copy=True)
    assert (tmp_path / "here/digits.npz").read_text() == "x"


def test_an_empty_store(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    bring("data.train", str(tmp_path / "store"), str(tmp_path / "here"), (0, 2), copy=True)
    assert list((tmp_path / "here").iterdir()) == []


def test_data_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=r"data\.train: /gcs/b/nothing is not there; check data's uri"):
        bring("data.train", "/gcs/b/nothing", str(tmp_path / "here"), (0, 1), copy=True)


def test_a_disk_that_takes_nothing(store: Path, tmp_path: Path) -> None:
    (tmp_path / "here").write_text("a file where the folder is to be")
    with pytest.raises(LaunchError, match=f"data.train: cannot copy {store}: "):
        bring("data.train", str(store), str(tmp_path / "here"), (0, 1), copy=True)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1536, "1.5 KiB"),
        (3 << 20, "3 MiB"),
        (5 << 30, "5 GiB"),
        (2 << 40, "2 TiB"),
    ],
)
def test_sizes(size: int, text: str) -> None:
    assert objects.size_text(size) == text
