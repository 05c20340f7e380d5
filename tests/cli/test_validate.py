"""cloudtrain validate: what it prints, where, and how it exits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import cloudtrain

GOOD = "name: digits\nentry: train.py\nresources: {nodes: 2, processes_per_node: 4}\n"
BAD = "name: Digits\nentry: train.py\nresorces: {}\n"


def project(folder: Path, text: str) -> Path:
    (folder / "train.py").touch()
    file = folder / "job.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_valid_job_is_one_line(tmp_path: Path) -> None:
    project(tmp_path, GOOD)
    done = cloudtrain("validate", "job.yaml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "job.yaml: valid: digits runs train.py on 2 nodes x 4 processes\n"


def test_problems_go_to_stderr_each_with_its_place(tmp_path: Path) -> None:
    project(tmp_path, BAD)
    done = cloudtrain("validate", "job.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "job.yaml:1:7: name: must be 1 to 40 of a-z 0-9 -, beginning and ending with a letter or digit, not 'Digits'",
        "job.yaml:3:1: resorces: unknown key, did you mean 'resources'?",
    ]


def test_files_that_are_not_there_are_problems_too(tmp_path: Path) -> None:
    project(tmp_path, "name: digits\nentry: trian.py\n")
    done = cloudtrain("validate", "job.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"job.yaml:2:8: entry: trian.py is not in {tmp_path}, did you mean 'train.py'?\n"


def test_files_that_are_not_there_are_told_beside_all_else_that_is_wrong(tmp_path: Path) -> None:
    text = "name: Digits\nentry: trian.py\nenvironment: {requirements: req.txt}\nresources: {nodes: none}\n"
    project(tmp_path, text)
    done = cloudtrain("validate", "job.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "job.yaml:1:7: name: must be 1 to 40 of a-z 0-9 -, beginning and ending with a letter or digit, not 'Digits'",
        f"job.yaml:2:8: entry: trian.py is not in {tmp_path}, did you mean 'train.py'?",
        f"job.yaml:3:29: environment.requirements: req.txt is not in {tmp_path}",
        "job.yaml:4:20: resources.nodes: must be a whole number of at least 1, not 'none'",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "name: n\nentry: ../x.py\nnodes: 1\n",
        "name: n\nentry: [a, b]\nnodes: 1\n",
        "name: n\ncode: [1]\nentry: trian.py\n",
    ],
)
def test_what_is_no_name_of_a_file_is_told_once(tmp_path: Path, text: str) -> None:
    project(tmp_path, text)
    done = cloudtrain("validate", "job.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "is not in" not in done.stderr
    assert done.stderr.count("entry:") == text.count("entry: [") + text.count("entry: .."), done.stderr


def test_data_that_are_not_here_are_a_remark_and_a_problem_where_they_would_have_to_be_sent(tmp_path: Path) -> None:
    uris = "{train: {uri: {local: data}}, test: {uri: {local: test, sagemaker: s3://mine/test/}}}"
    project(tmp_path, GOOD + f"data: {uris}\n")
    done = cloudtrain("validate", "job.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "job.yaml: valid: digits runs train.py on 2 nodes x 4 processes\n")
    notes = [
        f"job.yaml: note: data.{name}: {tmp_path / place} is not there, which a run here needs (or --data {name}=PATH)"
        for name, place in (("train", "data"), ("test", "test"))
    ]
    assert done.stderr.splitlines() == notes
    done = cloudtrain("validate", "job.yaml", "--provider", "sagemaker", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0].endswith(
        "data.train.uri: names no place for sagemaker; give data.train.uri.sagemaker, such as s3://bucket/folder/; "
        "or put the data at 'data' here, to be sent with the job"
    )
    (tmp_path / "data").mkdir()
    done = cloudtrain("validate", "job.yaml", "--provider", "sagemaker", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_json_is_all_there_is_on_stdout(tmp_path: Path) -> None:
    file = project(tmp_path, BAD)
    done = cloudtrain("validate", "--json", file)
    report = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (2, "")
    assert (report["file"], report["valid"]) == (str(file), False)
    message = "unknown key, did you mean 'resources'?"
    assert report["problems"][1] == {
        "file": str(file), "line": 3, "column": 1, "key": "resorces", "message": message,
    }  # fmt: skip


def test_several_files_at_once(tmp_path: Path) -> None:
    file = project(tmp_path, GOOD)
    done = cloudtrain("validate", "--json", file, tmp_path / "none.yaml")
    assert done.returncode == 2
    assert [(report["valid"], len(report["problems"])) for report in json.loads(done.stdout)] == [(True, 0), (False, 1)]


def test_a_missing_file_and_no_file(tmp_path: Path) -> None:
    done = cloudtrain("validate", "none.yaml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "none.yaml:1:1: there is no such file\n")
    assert cloudtrain("validate").returncode == 2


def test_code_that_cannot_ship_is_the_problem_of_its_file_alone(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    file = project(tmp_path / "a", GOOD)
    (tmp_path / "a" / ".gitignore").write_text("train.py\n")
    done = cloudtrain("validate", "--json", "--provider", "vertex", file, tmp_path / "none.yaml")
    first, second = json.loads(done.stdout)
    assert done.returncode == 2
    assert [problem["message"] for problem in first["problems"]] == [
        "entry: train.py does not ship with the code: left out by .gitignore:1: train.py"
    ]
    assert second["problems"][0]["message"] == "there is no such file"


def test_settings_that_cannot_be_read_are_told_with_all_else(tmp_path: Path) -> None:
    project(tmp_path, GOOD)
    (tmp_path / "cloudtrain.toml").write_text("[vertex]\nregoin = 'x'\n")
    done = cloudtrain("validate", "job.yaml", "none.yaml", "--provider", "vertex", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"{tmp_path / 'cloudtrain.toml'}: vertex.regoin: unknown setting, did you mean 'region'?",
        "none.yaml:1:1: there is no such file",
    ]


def test_an_unknown_provider_is_told_before_any_file_is_read(tmp_path: Path) -> None:
    done = cloudtrain("validate", "none.yaml", "--provider", "sagemake", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "cloudtrain: unknown provider 'sagemake', did you mean 'sagemaker'?\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('overrides: {azureml: {tags: {"\\ud800": x}}}', "half a surrogate pair"),
        ('tags: {"\\ud800": x}', "a tag's name must have"),
        (f"code: {'a' * 5000}", "cannot be looked at: File name too long"),
        (f"environment: {{requirements: {'a/' * 3000}x}}", "cannot be looked at: File name too long"),
        ("code: loop", "loop"),
    ],
)
def test_what_no_disk_or_request_can_hold_is_a_problem_with_its_place(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    project(tmp_path, f"name: digits\nentry: train.py\n{line}\n")
    done = cloudtrain("validate", "job.yaml", "--provider", "azureml", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("job.yaml:3:")
    assert said in done.stderr


def test_settings_say_whose_they_are_where_several_clouds_are_asked_for(tmp_path: Path) -> None:
    project(tmp_path, GOOD)
    clouds = ["--provider", "sagemaker", "--provider", "vertex"]
    done = cloudtrain("validate", "job.yaml", *clouds, "--set", "vertex.region=moon", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("--set vertex.region: 'moon' is no region") == 2  # it is nobody's, whoever is asked
    for options, said in (
        ([*clouds, "--set", "region=us-east4"], "say whose setting it is"),
        (["--set", "vertex.region=us-east4"], "--set goes with --provider"),
    ):
        done = cloudtrain("validate", "job.yaml", *options, cwd=tmp_path)
        assert done.returncode == 2 and said in done.stderr, done.stderr
    done = cloudtrain("validate", "job.yaml", *clouds, "--set", "vertex.region=us-east4", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
