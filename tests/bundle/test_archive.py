"""Archives and copies: what comes out is what went in, and nothing ever lands outside."""

from __future__ import annotations

import gzip
import io
import os
import stat
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from cloudtrain.bundle import Bundle, Limits, extract, scan, stage, write_archive
from cloudtrain.errors import MissingError, SpecError
from tests.bundle.trees import plant


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDTRAIN_HOME", str(tmp_path_factory.mktemp("home")))


def project(root: Path) -> Bundle:
    """A folder with an executable, a big file, a link, an empty file, odd names and a name beyond tar's 100 bytes."""
    plant(root, {"train.py": "x = 1\n", "run.sh": "#!/bin/sh\n", "a b/ü 'q'.txt": "", "n" * 200: "long"})
    plant(root, {"big.bin": os.urandom(3 << 20), "/".join(["deep"] * 60): "deep"})
    (root / "run.sh").chmod(0o755)
    (root / "link.py").symlink_to("train.py")
    return scan(root)


def contents(root: Path) -> dict[str, tuple[int, bytes]]:
    files = [path for path in root.rglob("*") if not path.is_dir()]
    assert not any(path.is_symlink() for path in files)
    return {str(path.relative_to(root)): (stat.S_IMODE(path.stat().st_mode), path.read_bytes()) for path in files}


def test_an_archive_extracts_to_the_same_digest(tmp_path: Path) -> None:
    bundle = project(tmp_path / "code")
    write_archive(bundle, tmp_path / "code.tar.gz")
    assert extract(tmp_path / "code.tar.gz", tmp_path / "new" / "copy") == bundle.digest
    assert scan(tmp_path / "new" / "copy").digest == bundle.digest


def test_stage_copies_the_same_files_with_their_modes(tmp_path: Path) -> None:
    bundle = project(tmp_path / "code")
    before = os.umask(0o077)
    try:
        stage(bundle, tmp_path / "copy")
    finally:
        os.umask(before)
    assert scan(tmp_path / "copy").digest == bundle.digest
    assert {path: mode for path, (mode, _) in contents(tmp_path / "copy").items()} == {
        file.path: 0o755 if file.path == "run.sh" else 0o644 for file in bundle.files
    }


def test_the_system_tar_reads_it(tmp_path: Path) -> None:
    bundle = project(tmp_path / "code")
    write_archive(bundle, tmp_path / "code.tar.gz")
    (tmp_path / "by tar").mkdir()
    subprocess.run(["tar", "-xzf", "../code.tar.gz"], cwd=tmp_path / "by tar", check=True)
    assert scan(tmp_path / "by tar").digest == bundle.digest


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    one = project(tmp_path / "one")
    stage(one, tmp_path / "two")
    os.utime(tmp_path / "two" / "train.py", (1, 1))
    (tmp_path / "two" / "big.bin").chmod(0o666)
    write_archive(one, tmp_path / "1.tar.gz")
    write_archive(scan(tmp_path / "two"), tmp_path / "another name.tgz")
    assert (tmp_path / "1.tar.gz").read_bytes() == (tmp_path / "another name.tgz").read_bytes()


def test_nothing_of_this_machine_is_in_the_archive(tmp_path: Path) -> None:
    write_archive(scan(plant(tmp_path / "code", {"b": "", "a/c": "x", "a.txt": ""})), tmp_path / "code.tar.gz")
    raw = (tmp_path / "code.tar.gz").read_bytes()
    assert raw[3] == 0  # gzip flags: no name, no comment
    assert raw[4:8] == bytes(4)  # gzip time
    with tarfile.open(tmp_path / "code.tar.gz") as tar:
        members = tar.getmembers()
    assert [member.name for member in members] == ["a.txt", "a/c", "b"]
    assert {(m.mtime, m.uid, m.gid, m.uname, m.gname, m.mode) for m in members} == {(0, 0, 0, "", "", 0o644)}


def test_an_archive_replaces_an_older_one_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    plant(tmp_path, {"code/a": "", "out/code.tar.gz": "old"})
    write_archive(scan(tmp_path / "code"), tmp_path / "out" / "code.tar.gz")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["code.tar.gz"]
    assert stat.S_IMODE((tmp_path / "out" / "code.tar.gz").stat().st_mode) == 0o644


@pytest.mark.parametrize("change", ["same size", "longer", "shorter", "gone", "a folder", "a pipe"])
def test_what_changed_after_the_scan_is_noticed(tmp_path: Path, change: str) -> None:
    file = plant(tmp_path / "code", {"a.py": "x = 1\n", "z": ""}) / "a.py"
    bundle = scan(tmp_path / "code")
    file.unlink()
    match change:
        case "same size":
            file.write_text("x = 2\n")
        case "longer":
            file.write_text("x = 1\n\n")
        case "shorter":
            file.write_text("x")
        case "a folder":
            file.mkdir()
        case "a pipe":
            os.mkfifo(file)
    (tmp_path / "out").mkdir()
    for deed, name in ((write_archive, "a.tar.gz"), (stage, "copy")):
        with pytest.raises(SpecError, match=r"^a\.py in .*code changed after the code folder was read"):
            deed(bundle, tmp_path / "out" / name)
    assert not (tmp_path / "out" / "a.tar.gz").exists()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["copy"]


def test_places_that_cannot_take_it(tmp_path: Path) -> None:
    plant(tmp_path, {"code/a": "1", "full/x": ""})
    bundle = scan(tmp_path / "code")
    with pytest.raises(SpecError, match="is a folder"):
        write_archive(bundle, tmp_path / "full")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SpecError, match="is not a regular file"):
        write_archive(bundle, tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()
    with pytest.raises(MissingError, match=r"cannot write .*/no/a\.tar\.gz: No such file or directory"):
        write_archive(bundle, tmp_path / "no" / "a.tar.gz")
    with pytest.raises(SpecError, match="is not empty"):
        stage(bundle, tmp_path / "full")
    with pytest.raises(MissingError, match=r"cannot write .*x"):
        stage(bundle, tmp_path / "full" / "x")


def test_a_link_to_an_archive_stays_a_link(tmp_path: Path) -> None:
    plant(tmp_path, {"code/a": "1", "real.tar.gz": "old"})
    (tmp_path / "link.tar.gz").symlink_to("real.tar.gz")
    write_archive(scan(tmp_path / "code"), tmp_path / "link.tar.gz")
    assert (tmp_path / "link.tar.gz").is_symlink()
    assert tarfile.is_tarfile(tmp_path / "real.tar.gz")


FULL_DISK = """
import resource, sys
from pathlib import Path
from cloudtrain.bundle import scan, stage
from cloudtrain.errors import MissingError
bundle = scan(Path(sys.argv[1]))
if len(sys.argv) > 3:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
place = Path(sys.argv[2])
try:
    stage(bundle, place)
except MissingError as error:
    print(error)
    sys.exit(error.exit_code)
"""


def may_mount() -> bool:
    return subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode == 0


def test_a_full_disk_names_the_place_and_the_need(tmp_path: Path) -> None:
    plant(tmp_path, {"code/big.bin": os.urandom(2 << 20), "small/.keep": ""})
    program = plant(tmp_path, {"program.py": FULL_DISK}) / "program.py"
    words = [sys.executable, str(program), f"{tmp_path}/code", f"{tmp_path}/small/copy"]
    if may_mount():
        mount = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=1M none "$0" && exec "$@"', f"{tmp_path}/small"]
        done = subprocess.run([*mount, *words], check=False, capture_output=True, text=True)
        message = f"no space left for {tmp_path}/small/copy; it needs up to 2.0 MiB"
    else:  # the nearest to a full disk that needs no permission: a limit on the size of files
        done = subprocess.run([*words, "limited"], check=False, capture_output=True, text=True)
        message = f"cannot write {tmp_path}/small/copy: File too large"
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.splitlines()[0] == message


# Hostile archives


def archive(path: Path, *members: tarfile.TarInfo | str) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for member in members:
            info = member if isinstance(member, tarfile.TarInfo) else tarfile.TarInfo(member)
            info.size = 4 if info.isreg() else 0
            tar.addfile(info, io.BytesIO(b"evil"))
    return path


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


HOSTILE: list[list[tarfile.TarInfo | str]] = [
    ["/abs"], ["../up"], ["a/../../up"], ["a/.."], [".."], ["."], ["./a"], ["a//b"], ["a/./b"], ["a/"],
    ["..\\up"], ["C:\\x"],
    [special("l", tarfile.SYMTYPE, "/etc"), "l/x"], [special("l", tarfile.SYMTYPE, ".."), "l/x"],
    [special("h", tarfile.LNKTYPE, "/etc/passwd")], ["a", special("h", tarfile.LNKTYPE, "a")],
    [special("d", tarfile.DIRTYPE)], [special("p", tarfile.FIFOTYPE)], [special("c", tarfile.CHRTYPE)], ["a", "a"],
    [special("s", tarfile.GNUTYPE_SPARSE)],
]  # fmt: skip


@pytest.mark.parametrize("members", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_archive_writes_nothing_outside(tmp_path: Path, members: list[tarfile.TarInfo | str]) -> None:
    bad = archive(tmp_path / "bad.tar.gz", "good", *members)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SpecError):
        extract(bad, tmp_path / "in" / "to")
    inside = [path for path in tmp_path.rglob("*") if (tmp_path / "in") in (path, *path.parents)]
    assert sorted(set(tmp_path.rglob("*")) - set(inside)) == before
    assert not any(path.is_symlink() for path in inside)


def test_a_file_cannot_be_a_folder_too(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="cannot write"):
        extract(archive(tmp_path / "bad.tar.gz", "a", "a/b"), tmp_path / "to")


def test_an_archive_that_unpacks_to_too_much(tmp_path: Path) -> None:
    bundle = scan(plant(tmp_path / "code", {"zeros": bytes(1 << 20), "a": "", "b": ""}))
    write_archive(bundle, tmp_path / "bomb.tar.gz")
    for limits in (Limits(size=1 << 10), Limits(files=2)):
        with pytest.raises(SpecError, match="holds more than"):
            extract(tmp_path / "bomb.tar.gz", tmp_path / f"to {limits.files}", limits=limits)


def test_what_is_no_archive(tmp_path: Path) -> None:
    write_archive(scan(plant(tmp_path / "code", {"a": os.urandom(10_000)})), tmp_path / "good")
    good = (tmp_path / "good").read_bytes()
    plant(
        tmp_path,
        {"text": "hello", "empty": "", "gz": gzip.compress(b"hello"), "cut": good[:5000], "cut early": good[:30]},
    )
    plant(tmp_path, {"flipped": good[:5000] + bytes([good[5000] ^ 255]) + good[5001:]})
    for name in ("text", "empty", "gz", "cut", "cut early", "flipped"):
        with pytest.raises(SpecError, match="is damaged or no bundle"):
            extract(tmp_path / name, tmp_path / f"to {name}")
    with pytest.raises(MissingError, match=r"cannot read .*/no: No such file"):
        extract(tmp_path / "no", tmp_path / "to")
