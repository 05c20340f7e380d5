"""What is found, what is refused, what the digest says, and what is read again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cloudtrain.bundle import Bundle, Limits, scan
from cloudtrain.errors import MissingError, SpecError
from tests.bundle.trees import later, plant


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("CLOUDTRAIN_HOME", str(home))
    return home


def paths(bundle: Bundle) -> list[str]:
    return [file.path for file in bundle.files]


def refusal(folder: Path, limits: Limits | None = None) -> SpecError:
    with pytest.raises(SpecError) as caught:
        scan(folder, limits=limits)
    return caught.value


# The digest


def test_the_digest_of_a_small_tree_by_hand(tmp_path: Path) -> None:
    plant(tmp_path, {"train.py": "print(1)\n", "a/ü b.txt": "", "a.sh": "#!/bin/sh\n"})
    (tmp_path / "a.sh").chmod(0o700)
    (tmp_path / "empty").mkdir()
    listing = (
        "cloudtrain-bundle 1\n"
        f"{hashlib.sha256(b'#!/bin/sh' + bytes([10])).hexdigest()} 10 x a.sh\n"
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 0 - a/ü b.txt\n"  # sha256 of nothing
        f"{hashlib.sha256(b'print(1)' + bytes([10])).hexdigest()} 9 - train.py\n"
    )
    bundle = scan(tmp_path)
    assert bundle.digest == hashlib.sha256(listing.encode()).hexdigest()
    assert (paths(bundle), bundle.size) == (["a.sh", "a/ü b.txt", "train.py"], 19)


def test_the_digest_of_nothing(tmp_path: Path) -> None:
    assert scan(tmp_path).digest == hashlib.sha256(b"cloudtrain-bundle 1\n").hexdigest()


FILES = {"train.py": "x = 1\n", "pkg/__init__.py": "", "pkg/model.py": "y = 2\n", "z": "3"}


def test_the_digest_does_not_depend_on_times_order_place_or_other_mode_bits(tmp_path: Path) -> None:
    one = plant(tmp_path / "one", FILES)
    two = plant(tmp_path / "somewhere" / "else", dict(reversed(FILES.items())))
    os.utime(two / "train.py", (1, 1))
    (two / "z").chmod(0o666)
    (two / "pkg" / "nothing in it").mkdir()
    (tmp_path / "link").symlink_to(one)
    assert scan(one).digest == scan(two).digest == scan(tmp_path / "link").digest


@pytest.mark.parametrize("change", ["content", "name", "folder", "exec", "more", "less"])
def test_the_digest_changes_with_what_ships(tmp_path: Path, change: str) -> None:
    before = scan(plant(tmp_path, FILES), clock=later).digest
    match change:
        case "content":
            (tmp_path / "z").write_text("4")
        case "name":
            (tmp_path / "z").rename(tmp_path / "y")
        case "folder":
            (tmp_path / "z").rename(tmp_path / "pkg" / "z")
        case "exec":
            (tmp_path / "z").chmod(0o744)
        case "more":
            (tmp_path / "more").touch()
        case "less":
            (tmp_path / "pkg" / "__init__.py").unlink()
    assert scan(tmp_path, clock=later).digest != before


def test_bytes_cannot_move_between_name_and_content_unnoticed(tmp_path: Path) -> None:
    one, two = plant(tmp_path / "1", {"a": "b", "c": ""}), plant(tmp_path / "2", {"a": "", "c": "b"})
    assert scan(one).digest != scan(two).digest


# Reading again


def test_an_unchanged_tree_is_not_read_again(tmp_path: Path) -> None:
    plant(tmp_path, {f"d{n % 100}/f{n}.py": f"x = {n}\n" for n in range(10_000)})
    first, second = scan(tmp_path, clock=later), scan(tmp_path, clock=later)
    assert (first.reread, second.reread) == (10_000, 0)
    assert first.digest == second.digest
    (tmp_path / "d7" / "f7.py").write_text("x = 8\n")
    third = scan(tmp_path, clock=later)
    assert third.reread == 1
    assert third.digest != first.digest


def test_an_edit_that_keeps_size_and_mtime_is_noticed(tmp_path: Path) -> None:
    file = plant(tmp_path, FILES) / "train.py"
    before, times = scan(tmp_path, clock=later), file.stat()
    file.write_text("x = 2\n")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert file.stat().st_mtime_ns == times.st_mtime_ns
    after = scan(tmp_path, clock=later)
    assert after.reread == 1
    assert after.digest != before.digest


def test_a_file_put_in_place_of_another_is_noticed(tmp_path: Path) -> None:
    file = plant(tmp_path / "code", FILES) / "train.py"
    before, times = scan(tmp_path / "code", clock=later), file.stat()
    other = plant(tmp_path, {"other": "x = 2\n"}) / "other"
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    other.rename(file)
    assert scan(tmp_path / "code", clock=later).digest != before.digest


def test_files_too_young_to_trust_are_read_again(tmp_path: Path) -> None:
    plant(tmp_path, FILES)
    (tmp_path / "z").touch()
    youngest = (tmp_path / "z").stat().st_ctime_ns
    assert scan(tmp_path, clock=lambda: youngest + 1_000_000_000).reread == 4
    assert scan(tmp_path, clock=lambda: youngest + 3_000_000_000).reread == 4
    assert scan(tmp_path, clock=lambda: youngest + 3_000_000_000).reread == 0


DAMAGED = [
    b"", b"\0\xff", b"{}", b"[]", b"null", b'{"format": 1}', b"[" * 100_000,
    b'{"format":1,"folder":"FOLDER","files":{"z":1}}', b'{"format":1,"folder":"FOLDER","files":[1]}',
    b'{"format":1,"folder":"FOLDER","files":{"z":[[1,2,3,4,5],"short"]}}',
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_cache_costs_nothing_but_time(tmp_path: Path, own_home: Path, damage: bytes) -> None:
    good = scan(plant(tmp_path, FILES), clock=later)
    (cache,) = own_home.rglob("*.json")
    cache.write_bytes(damage.replace(b"FOLDER", os.fsencode(tmp_path.resolve())))
    assert scan(tmp_path, clock=later) == Bundle(good.folder, good.files, reread=4)
    assert scan(tmp_path, clock=later).reread == 0


def test_a_home_that_cannot_be_written_is_no_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, {"code/a": "", "a file": ""})
    monkeypatch.setenv("CLOUDTRAIN_HOME", str(tmp_path / "a file" / "home"))
    assert [scan(tmp_path / "code", clock=later).reread for _ in range(2)] == [1, 1]


def test_the_cache_is_for_its_owner_alone(tmp_path: Path, own_home: Path) -> None:
    scan(plant(tmp_path, FILES), clock=later)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in own_home.rglob("*")}
    assert modes == {0o700, 0o600}


# Links


def test_links_inside_the_folder_are_followed(tmp_path: Path) -> None:
    plant(tmp_path, {"src/a.py": "a", "src/deep/b.py": "b", "run.sh": ""})
    (tmp_path / "run.sh").chmod(0o755)
    (tmp_path / "one.py").symlink_to("src/a.py")
    (tmp_path / "absolute.sh").symlink_to(tmp_path / "run.sh")
    (tmp_path / "lib").symlink_to("src")
    (tmp_path / "src" / "deep" / "up").symlink_to("../../one.py")
    bundle = scan(tmp_path)
    copy = plant(tmp_path / "copy", {})
    plant(copy, {"absolute.sh": "", "run.sh": ""})
    plant(copy, {"one.py": "a", "lib/a.py": "a", "lib/deep/b.py": "b", "lib/deep/up": "a"})
    plant(copy, {"src/a.py": "a", "src/deep/b.py": "b", "src/deep/up": "a"})
    for path in ("absolute.sh", "run.sh"):
        (copy / path).chmod(0o755)
    assert bundle.digest == scan(copy).digest


def test_links_that_cannot_ship_are_refused_together_by_name(tmp_path: Path) -> None:
    code = plant(tmp_path / "code", {"a.py": "", "sub/b.py": "", ".git/config": ""})
    plant(tmp_path, {"outside.py": "", "code-not/x": ""})
    for name, target in {
        "leaves": "../outside.py", "out": "/", "near": "../code-not", "dangles": "no such file", "through": "a.py/x",
        "itself": "itself", "sub/up": "..", "sub/self": ".", "git": ".git", "b": "\\c", "hop": "leaves",
    }.items():  # fmt: skip
        (code / name).symlink_to(target)
    error = refusal(code)
    assert error.message.splitlines() == [
        f"the code folder {code} holds what cannot ship:",
        "  b is a link that leads nowhere: -> \\c",
        "  dangles is a link that leads nowhere: -> no such file",
        "  git is a link into .git, which never ships: -> .git",
        "  hop is a link that leaves the code folder: -> leaves",
        "  itself is a link that loops: -> itself",
        "  leaves is a link that leaves the code folder: -> ../outside.py",
        "  near is a link that leaves the code folder: -> ../code-not",
        "  out is a link that leaves the code folder: -> /",
        "  sub/self is a link that loops: -> .",
        "  sub/up is a link that loops: -> ..",
        "  through is a link that leads nowhere: -> a.py/x",
    ]
    assert error.hint == f"Remove it, or leave it out: add its path to {code / '.cloudtrainignore'}."
    plant(code, {".cloudtrainignore": "out/\nnear/\nleaves\nhop\ndangles\nthrough\nitself\nup\nself\ngit\nb"})
    assert paths(scan(code)) == [".cloudtrainignore", "a.py", "sub/b.py"]


def test_links_that_lead_to_each_other_end(tmp_path: Path) -> None:
    plant(tmp_path, {"a/x": "", "b/y": ""})
    (tmp_path / "a" / "to").symlink_to("../b")
    (tmp_path / "b" / "to").symlink_to("../a")
    lines = refusal(tmp_path).message.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["a/to/to", "b/to/to"]


def test_a_maze_of_links_without_a_file_ends(tmp_path: Path) -> None:
    for n in range(30):
        (tmp_path / str(n)).mkdir()
        for side in "lr" if n < 29 else "":
            (tmp_path / str(n) / side).symlink_to(f"../{n + 1}")
    assert "over 1,0" in refusal(tmp_path, Limits(files=100)).message


# What else cannot ship


def test_special_files_are_refused_by_name_unless_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, {"a": ""})
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "null").symlink_to("/dev/null")
    monkeypatch.chdir(tmp_path)  # the whole path may be too long for a socket
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("sock")
    assert refusal(tmp_path).message.splitlines()[1:] == [
        "  null is a link that leaves the code folder: -> /dev/null",
        "  pipe is a named pipe",
        "  sock is a socket",
    ]
    plant(tmp_path, {".cloudtrainignore": "pipe\nnull\nsock"})
    assert paths(scan(tmp_path)) == [".cloudtrainignore", "a"]


def test_names_that_not_every_machine_can_keep_are_refused(tmp_path: Path) -> None:
    names = [
        b"\xff.py",
        b"new\nline",
        b"bell\x07",
        b"del\x7f",
        b"back\\slash",
        "para\u2029".encode(),
        "nel\x85".encode(),
    ]
    for name in names:
        Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).touch()  # noqa: PTH118
    assert refusal(tmp_path).message.splitlines()[1:] == [
        "  \\udcff.py has a name that is not UTF-8",
        "  back\\slash has a backslash in its name",
        "  bell\\x07 has a control character in its name",
        "  del\\x7f has a control character in its name",
        "  nel\\x85 has a control character in its name",
        "  new\\nline has a control character in its name",
        "  para\\u2029 has a control character in its name",
    ]
    plant(tmp_path, {".cloudtrainignore": b"\xff*\nnew*\nbell*\ndel*\nback*\npara*\nnel*"})
    assert paths(scan(tmp_path)) == [".cloudtrainignore"]


def test_odd_but_fine_names_ship_as_they_are(tmp_path: Path) -> None:
    names = [
        "$HOME",
        "`id`",
        "a 'b' \"c\"",
        " ",
        "-rf",
        "*",
        "~",
        "a:b",
        "ünï",
        "日本語",
        "😀",
        "con",
        "x" * 255,
        "...",
    ]
    names += ["README", "readme", "\u00e9", "e\u0301"]  # differ in case, in normalisation only: two files
    plant(tmp_path, {name: name for name in names})
    assert paths(scan(tmp_path)) == sorted(names, key=str.encode)


@contextlib.contextmanager
def unprivileged() -> Iterator[Path]:
    """A folder of a user whom permissions bind, also where the tests run as root."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        root = os.geteuid() == 0
        if root:
            os.chown(folder, 65534, 65534)
            os.seteuid(65534)
        try:
            yield folder
        finally:
            if root:
                os.seteuid(0)
            for locked in ("closed", "sub"):
                (folder / locked).chmod(0o700)


def test_what_may_not_be_read_is_named(own_home: Path) -> None:
    with unprivileged() as folder:
        plant(folder, {"closed": "", "sub/x": "", "sub/.gitignore": ""})
        (folder / "closed").chmod(0)
        with pytest.raises(MissingError, match="cannot read closed in the code folder: Permission denied"):
            scan(folder)
        (folder / "sub").chmod(0)
        with pytest.raises(MissingError, match=r"cannot read in the code folder:\n  sub/: Permission denied"):
            scan(folder)


def test_a_code_folder_that_is_none(tmp_path: Path) -> None:
    plant(tmp_path, {"file": ""})
    assert refusal(tmp_path / "no").message == f"the code folder {tmp_path / 'no'} is not there"
    assert refusal(tmp_path / "file").message == f"the code folder {tmp_path / 'file'} is not a folder"


def test_a_tree_deeper_than_python_recurses_ships(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folders = [Path("code", *["d"] * depth) for depth in range(1_200)]
    try:
        for folder in folders:
            folder.mkdir()
        (folders[-1] / "f").touch()
        assert paths(scan(Path("code"))) == ["d/" * 1_199 + "f"]
    finally:  # pytest's own way of tidying up recurses
        (folders[-1] / "f").unlink()
        for folder in reversed(folders):
            folder.rmdir()


# Limits


def test_too_many_files_names_the_folders_that_hold_them(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {f"work/data/train/{n}": "" for n in range(30)} | {f"logs/{n}": "" for n in range(9)} | {"a": "", "b": ""},
    )
    error = refusal(tmp_path, Limits(files=40))
    assert [line.split() for line in error.message.splitlines()] == [
        f"the code folder {tmp_path} would ship 41 files; at most 40 may. Most of it:".split(),
        ["30", "files", "work/data/train/"],
        ["9", "files", "logs/"],
        ["1", "files", "a"],
        ["1", "files", "b"],
    ]
    assert error.hint is not None and ".cloudtrainignore" in error.hint
    assert len(scan(tmp_path, limits=Limits(files=41)).files) == 41


def test_too_much_names_the_files_that_weigh(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {"m/best.pt": b"x" * 3000, "m/readme": b"x", "d/1": b"x" * 1024, "d/2": b"x" * 1024, "train.py": b"x" * 10},
    )
    error = refusal(tmp_path, Limits(size=5000))
    assert [line.strip() for line in error.message.splitlines()[1:]] == [
        "2.9 KiB  m/best.pt",
        "2.0 KiB  d/",
        "10 bytes  train.py",
    ]
    assert scan(tmp_path, limits=Limits(size=5059)).size == 5059


def test_a_sparse_giant_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "giant.bin").open("wb") as file:
        file.truncate(1 << 40)
    assert "1.0 TiB; at most 1.0 GiB may" in refusal(tmp_path).message


# Change underneath


def test_a_file_that_vanishes_while_the_folder_is_read_is_left_out(tmp_path: Path) -> None:
    plant(tmp_path, {"a": "", "scratch": ""})

    def tidy() -> int:  # asked before each file is read
        (tmp_path / "scratch").unlink(missing_ok=True)
        return later()

    assert paths(scan(tmp_path, clock=tidy)) == ["a"]


def test_a_file_that_keeps_changing_is_named(tmp_path: Path) -> None:
    log = plant(tmp_path, {"a": "", "train.log": b"x" * (32 << 20)}) / "train.log"
    done = threading.Event()

    def keep_touching() -> None:
        while not done.is_set():
            os.utime(log)

    toucher = threading.Thread(target=keep_touching)
    toucher.start()
    try:
        assert refusal(tmp_path).message == f"train.log in {tmp_path} changed each time it was read"
    finally:
        done.set()
        toucher.join()


LIST = """
import sys
from pathlib import Path
from cloudtrain.bundle import scan

print([file.path for file in scan(Path(sys.argv[1])).files])
"""


def test_the_output_of_the_command_itself_does_not_ship(tmp_path: Path) -> None:
    """It grows while the code ships: ``cloudtrain submit --follow > log``."""
    plant(tmp_path, {"a": "", "logs/old": ""})
    out, err = tmp_path / "out", tmp_path / "logs" / "err"
    with out.open("w") as stdout, err.open("w") as stderr:
        command = [sys.executable, "-c", LIST, str(tmp_path)]
        subprocess.run(command, stdout=stdout, stderr=stderr, check=True, cwd=Path(__file__).parents[2])
    assert out.read_text() == "['a', 'logs/old']\n"
    assert paths(scan(tmp_path)) == ["a", "logs/err", "logs/old", "out"]
