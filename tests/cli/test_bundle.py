"""``cloudtrain bundle`` as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.bundle.trees import plant

JOB = "name: digits\nentry: train.py\ncode: src\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    plant(
        tmp_path, {"job.yaml": JOB, "src/train.py": "x = 1\n", "src/run.sh": "#!/bin/sh\n", "src/big.bin": "x" * 2048}
    )
    plant(tmp_path, {"src/.cloudtrainignore": "\n*.bin\n"})
    (tmp_path / "src" / "run.sh").chmod(0o755)
    return tmp_path


def bundle(project: Path, *words: str, code: int = 0) -> tuple[str, str]:
    """Standard output and error of ``cloudtrain bundle`` started in the project, which must end with ``code``."""
    argv = [str(Path(sys.executable).with_name("cloudtrain")), "bundle", *words]
    env = os.environ | {"CLOUDTRAIN_HOME": str(project / "home")}
    done = subprocess.run(argv, cwd=project, env=env, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def test_list_shows_what_ships(project: Path) -> None:
    out, err = bundle(project, "--list", "job.yaml")
    *files, total, digest = out.splitlines()
    assert [line.split() for line in files] == [
        ["7", ".cloudtrainignore"],
        ["x", "10", "run.sh"],
        ["6", "train.py"],
    ]
    assert total == f"3 files, 23 bytes, from {project / 'src'}"
    assert digest.startswith("digest sha256:")
    assert err == ""


def test_the_summary_names_the_biggest(project: Path) -> None:
    plant(project, {f"src/f{n}.py": "y" * (100 + n) for n in range(6)})
    out, _ = bundle(project, "job.yaml")
    lines = out.splitlines()
    assert lines[0].startswith("9 files, 638 bytes, from")
    assert [line.split()[-1] for line in lines[3:]] == ["f5.py", "f4.py", "f3.py", "f2.py", "f1.py"]


def test_json_is_all_there_is_on_stdout(project: Path) -> None:
    short = json.loads(bundle(project, "--json", "job.yaml")[0])
    assert (short["count"], short["size"], short["folder"]) == (3, 23, str(project / "src"))
    assert short["biggest"][0] == {"path": "run.sh", "size": 10}
    assert "files" not in short
    full = json.loads(bundle(project, "--json", "--list", "job.yaml")[0])
    assert full["digest"] == short["digest"]
    assert [(file["path"], file["executable"]) for file in full["files"]] == [
        (".cloudtrainignore", False),
        ("run.sh", True),
        ("train.py", False),
    ]


def test_output_writes_the_archive(project: Path) -> None:
    report = json.loads(bundle(project, "-o", "code.tar.gz", "--json", "job.yaml")[0])
    written = project / "code.tar.gz"
    assert report["archive"] == {"path": "code.tar.gz", "size": written.stat().st_size}
    with tarfile.open(written) as tar:
        assert tar.getnames() == [".cloudtrainignore", "run.sh", "train.py"]
    assert "wrote code.tar.gz, " in bundle(project, "-o", "code.tar.gz", "job.yaml")[0]


def test_an_archive_that_would_ship_itself_is_refused(project: Path) -> None:
    out, err = bundle(project, "-o", "src/code.tar.gz", "job.yaml", code=2)
    assert out == ""
    assert err.splitlines() == [
        "cloudtrain: src/code.tar.gz lies in the code folder and would ship with the next run",
        "Write it elsewhere, or add code.tar.gz to .cloudtrainignore.",
    ]
    bundle(project, "-o", "src/code.bin", "job.yaml")


def test_why(project: Path) -> None:
    assert bundle(project, "--why", "big.bin", "job.yaml")[0] == "big.bin: left out by .cloudtrainignore:2: *.bin\n"
    assert bundle(project, "--why", "train.py", "job.yaml")[0] == "train.py: ships\n"
    assert json.loads(bundle(project, "--json", "--why", "big.bin", "job.yaml")[0]) == {
        "path": "big.bin",
        "ships": False,
        "reason": "left out by .cloudtrainignore:2: *.bin",
        "rule": {"file": ".cloudtrainignore", "line": 2, "pattern": "*.bin"},
    }
    bundle(project, "--why", "big.bin", "--list", "job.yaml", code=2)


PLACES = """name: digits
module: pkg.train
data: {train: {uri: {local: data}}, labels: {uri: {local: some/labels.csv}}, package: {uri: {local: pkg}}}
outputs: {metrics: {local: file://out/m}, code: {local: helpers}}
checkpoint: {uri: {local: ckpt}}
"""


@pytest.fixture
def with_places(project: Path) -> Path:
    """A project whose job names places in its own code folder."""
    shipping = {"pkg/train.py": "", "helpers/__init__.py": "", "some/code.py": "", "sub/data/x.py": ""}
    plant(project / "p", {"job.yaml": PLACES, "data/x.bin": "x", "some/labels.csv": "a,b", **shipping})
    return project


def listed(project: Path) -> list[str]:
    found = json.loads(bundle(project, "--list", "--json", "p/job.yaml")[0])["files"]
    return [file["path"] for file in found]


def test_places_of_data_and_results_are_no_code(with_places: Path) -> None:
    code = ["helpers/__init__.py", "job.yaml", "pkg/train.py", "some/code.py", "sub/data/x.py"]
    assert listed(with_places) == code
    before = bundle(with_places, "p/job.yaml")
    plant(with_places / "p", {"out/m/metrics.json": "{}", "ckpt/digits-1/step-1/model.pt": "x", "data/y.bin": "y"})
    (with_places / "p/data/disk").symlink_to("/")
    assert bundle(with_places, "p/job.yaml") == before


def test_an_ignore_file_ships_a_place_all_the_same(with_places: Path) -> None:
    said = bundle(with_places, "--why", "data/x.bin", "p/job.yaml")[0]
    why = "left out with its folder data/: it is the place of data.train; !/data in .cloudtrainignore ships it"
    assert said == f"data/x.bin: {why}\n"
    plant(with_places / "p", {".cloudtrainignore": "!/data\n"})
    assert bundle(with_places, "--why", "data/x.bin", "p/job.yaml")[0] == "data/x.bin: ships\n"
    assert "data/x.bin" in listed(with_places)


def test_a_place_that_is_a_link_is_left_out_with_what_it_leads_to(project: Path) -> None:
    plant(project / "p", {"job.yaml": PLACES, "pkg/train.py": "", "disk/d/x.bin": "", "disk/code.py": ""})
    (project / "p/data").symlink_to("disk/d")
    (project / "p/ckpt").symlink_to("/")
    assert listed(project) == ["disk/code.py", "job.yaml", "pkg/train.py"]


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ("no job file", 2, "nothing.yaml"),
        ("a link that leaves", 2, "out is a link that leaves the code folder: -> /"),
        ("no place to write", 3, "cannot write no/such/place.tar.gz"),
    ],
)
def test_errors_are_sentences(project: Path, change: str, code: int, message: str) -> None:
    words = ["job.yaml"]
    match change:
        case "no job file":
            words = ["nothing.yaml"]
        case "a link that leaves":
            (project / "src" / "out").symlink_to("/")
        case "no place to write":
            words += ["-o", "no/such/place.tar.gz"]
    out, err = bundle(project, *words, code=code)
    assert out == ""
    assert message in err
    assert "Traceback" not in err


def test_a_code_folder_with_a_name_that_is_no_text(project: Path) -> None:
    odd = os.fsdecode(b"\xff\n")
    (project / odd).mkdir()
    plant(project / odd, {"job.yaml": "name: x\nentry: a.py\n", "a.py": "", ".gitignore": b"*.\xfe\n"})
    out, _ = bundle(project, "--list", f"{odd}/job.yaml")
    assert out.splitlines()[3] == f"3 files, 24 bytes, from {project}/\\udcff\\n"
    assert bundle(project, "--why", os.fsdecode(b"x.\xfe"), f"{odd}/job.yaml")[0] == (
        "x.\\udcfe: left out by .gitignore:1: *.\\udcfe\n"
    )


def test_bundles_made_at_the_same_time_do_not_spoil_each_other(project: Path) -> None:
    plant(project, {f"src/{n % 20}/{n}.py": f"{n}" for n in range(2_000)})
    with ThreadPoolExecutor(6) as pool:
        reports = list(pool.map(lambda _: json.loads(bundle(project, "--json", "job.yaml")[0]), range(6)))
    assert {report["digest"] for report in reports} == {json.loads(bundle(project, "--json", "job.yaml")[0])["digest"]}
    files = [path for path in (project / "home").rglob("*") if path.is_file() and path.name != ".gitignore"]
    assert {path.suffix for path in files} <= {".json"}
