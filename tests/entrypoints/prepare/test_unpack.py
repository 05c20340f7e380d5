"""The code's archive: what our bundler writes comes out as it went in; whatever else an archive may hold does not."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from cloudtrain.bundle import scan, write_archive
from cloudtrain_launch.errors import LaunchError
from cloudtrain_launch.unpack import unpack


def _tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mode & 0o111)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_what_the_bundler_wrote(tmp_path: Path) -> None:
    code = tmp_path / "project"
    (code / "deep/er").mkdir(parents=True)
    (code / "train.py").write_text("print(1)\n")
    (code / "run.sh").write_text("#!/bin/sh\n")
    (code / "run.sh").chmod(0o755)
    (code / "deep/er/ünïcode name.txt").write_bytes(b"\0\xff" * 5000)
    (code / ("n" * 150)).write_text("longer than a plain tar header")
    write_archive(scan(code), tmp_path / "code.tar.gz")
    unpack(str(tmp_path / "code.tar.gz"), str(tmp_path / "out"))
    assert _tree(tmp_path / "out") == _tree(code)


def _archive(tmp_path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> str:
    path = tmp_path / "code.tar.gz"
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return str(path)


def _member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


@pytest.mark.parametrize(
    "name",
    ["../evil", "a/../../evil", "/evil", "a/../b", "./a", "a//b", "..", "a\\..\\evil", "a/./b"],
)
def test_a_path_that_is_not_plain(name: str, tmp_path: Path) -> None:
    archive = _archive(tmp_path, (_member(name), b"x"))
    with pytest.raises(LaunchError, match="which is not a plain relative path"):
        unpack(archive, str(tmp_path / "out/code"))
    assert not any(path.name == "evil" for path in tmp_path.rglob("*"))
    assert not Path("/evil").exists()


@pytest.mark.parametrize(
    "member",
    [
        _member("link", tarfile.SYMTYPE, "/etc"),
        _member("link", tarfile.SYMTYPE, "inside"),
        _member("hard", tarfile.LNKTYPE, "/etc/passwd"),
        _member("pipe", tarfile.FIFOTYPE),
        _member("disk", tarfile.BLKTYPE),
        _member("tty", tarfile.CHRTYPE),
        _member("folder", tarfile.DIRTYPE),
    ],
    ids=lambda member: member.type.decode(),
)
def test_a_member_that_is_no_regular_file(member: tarfile.TarInfo, tmp_path: Path) -> None:
    archive = _archive(tmp_path, (member, b""))
    with pytest.raises(LaunchError, match=f"holds '{member.name}', which is not a regular file"):
        unpack(archive, str(tmp_path / "out"))
    assert list((tmp_path / "out").iterdir()) == []


def test_a_file_written_through_a_link_of_the_same_archive(tmp_path: Path) -> None:
    archive = _archive(tmp_path, (_member("a", tarfile.SYMTYPE, str(tmp_path)), b""), (_member("a/evil"), b"x"))
    with pytest.raises(LaunchError, match="not a regular file"):
        unpack(archive, str(tmp_path / "out"))
    assert not (tmp_path / "evil").exists()


def test_the_same_name_twice(tmp_path: Path) -> None:
    archive = _archive(tmp_path, (_member("a"), b"1"), (_member("a"), b"2"))
    with pytest.raises(LaunchError, match=r"cannot unpack .*File exists"):
        unpack(archive, str(tmp_path / "out"))


def test_modes_that_give_more_than_is_needed(tmp_path: Path) -> None:
    member = _member("a")
    member.mode = 0o6777
    unpack(_archive(tmp_path, (member, b"x")), str(tmp_path / "out"))
    assert (tmp_path / "out/a").stat().st_mode & 0o6022 == 0


@pytest.mark.parametrize("kept", [10, 60, 100])
def test_a_damaged_archive(kept: int, tmp_path: Path) -> None:
    archive = _archive(tmp_path, (_member("a"), os.urandom(2000)))
    whole = Path(archive).read_bytes()
    Path(archive).write_bytes(whole[:kept])
    with pytest.raises(LaunchError, match=r"is damaged or no archive|cannot unpack"):
        unpack(archive, str(tmp_path / "out"))


@pytest.mark.parametrize(
    "spoil", [lambda data: data[:-1], lambda data: data[:900] + bytes([data[900] ^ 1]) + data[901:]]
)
def test_what_only_the_checksum_tells(spoil: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """Random bytes are stored as they are, so a changed one unpacks as well as any."""
    archive = Path(_archive(tmp_path, (_member("a"), os.urandom(2000))))
    archive.write_bytes(spoil(archive.read_bytes()))
    with pytest.raises(LaunchError, match=r"CRC check failed|ended before the end-of-stream marker|invalid"):
        unpack(str(archive), str(tmp_path / "out"))


@pytest.mark.parametrize("content", [b"", b"not gzip at all", gzip.compress(b"not tar" * 100, mtime=0)])
def test_no_archive_at_all(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "code.tar.gz").write_bytes(content)
    with pytest.raises(LaunchError, match=r"CLOUDTRAIN_CODE: .*code\.tar\.gz"):
        unpack(str(tmp_path / "code.tar.gz"), str(tmp_path / "out"))


def test_an_archive_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=r"CLOUDTRAIN_CODE: cannot unpack /no/code\.tar\.gz: .*No such file"):
        unpack("/no/code.tar.gz", str(tmp_path / "out"))
