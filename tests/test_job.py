"""The job made in Python: its checks, what it answers, and changing it."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import cloudtrain as ct
from cloudtrain.catalog.accelerators import accelerator, accelerators
from cloudtrain.errors import SpecError
from cloudtrain.job import Channel, Job, Resources
from cloudtrain.jobfile import JobFileError
from cloudtrain.spec.durations import Duration


def job(**fields: Any) -> Job:
    return Job(**{"name": "digits", "entry": "train.py", **fields})


def refusal(**fields: Any) -> list[str]:
    with pytest.raises(JobFileError) as caught:
        job(**fields)
    return str(caught.value).splitlines()


def test_a_job_needs_a_name_and_a_start() -> None:
    with pytest.raises(ct.SpecError) as caught:
        Job()  # type: ignore[call-arg]
    assert caught.value.exit_code == 2
    assert str(caught.value).splitlines() == [
        "says not what to run: give one of entry, module, task",
        "name: is missing: what people call the job",
    ]


def test_the_defaults_are_those_of_the_contract() -> None:
    made = job()
    assert (made.code, made.framework, made.resources.nodes, made.processes) == (".", "pytorch", 1, 1)
    assert (made.retries.preemption, made.retries.capacity, made.retries.failure) == (10, 3, 0)
    assert (made.checkpoint.keep, made.spot.enabled, made.argv, dict(made.data)) == (3, False, [], {})
    assert made == job(resources=None, data=None, version=1, environment={})


@pytest.mark.parametrize("name", ["a", "7", "a-b", "007", "a" * 40])
def test_good_names(name: str) -> None:
    assert job(name=name).name == name


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "a_b", "a" * 41, "ä", "a\n", "a.b"])
def test_bad_names(name: str) -> None:
    (line,) = refusal(name=name)
    assert line.startswith("name: must be 1 to 40 of a-z 0-9 -")


@pytest.mark.parametrize("entry", ["train.py", "src/train.py", "./train.py", "a b/ü.py", "..train.py"])
def test_good_entries(entry: str) -> None:
    assert job(entry=entry).start == entry


@pytest.mark.parametrize(
    "entry", ["/train.py", "../train.py", "a/../b.py", "src/", "a\\b.py", "C:x.py", "t.py:T", "~/x.py"]
)
def test_bad_entries(entry: str) -> None:
    (line,) = refusal(entry=entry)
    assert line.startswith("entry: must be a script inside the code folder")


def test_modules_and_tasks() -> None:
    assert job(entry=None, module="pkg.train").start == "pkg.train"
    assert job(entry=None, task="src/tasks.py:Digits").start == "src/tasks.py:Digits"
    for module in ("pkg/train.py", "pkg.", ".pkg", "a-b", "1a"):
        assert refusal(entry=None, module=module)[0].startswith("module: must be a module's dotted name")
    for task in ("tasks.py", "tasks:Digits", "tasks.py:", "tasks.py:a.b", "../t.py:T"):
        assert refusal(entry=None, task=task)[0].startswith("task: must be a file and a class")


def test_two_starts_are_one_too_many() -> None:
    assert refusal(module="pkg.train") == ["module: cannot stand beside entry: give exactly one of entry, module, task"]


@pytest.mark.parametrize(
    ("args", "argv"),
    [
        ({"epochs": 5, "lr": 0.05}, ["--epochs", "5", "--lr", "0.05"]),
        ({"amp": True, "debug": False, "resume": None}, ["--amp"]),
        ({"sizes": [1, 2.5, "x"]}, ["--sizes", "1", "2.5", "x"]),
        ({"a_b": "", "q": 'it\'s "q"'}, ["--a_b", "", "--q", 'it\'s "q"']),
        ({"text": "true", "n": "null"}, ["--text", "true", "--n", "null"]),
        ({"small": 1e-5, "big": 1e22, "neg": -0.1}, ["--small", "1e-05", "--big", "1e+22", "--neg", "-0.1"]),
        (
            ["--", "$HOME", "`x`", "*", "a\nb", "${{x}}", "${FOO}"],
            ["--", "$HOME", "`x`", "*", "a\nb", "${{x}}", "${FOO}"],
        ),
        (("x", 7), ["x", "7"]),
        ([], []),
    ],
)
def test_argv(args: Any, argv: list[str]) -> None:
    assert job(args=args).argv == argv


@pytest.mark.parametrize(
    ("args", "line"),
    [
        ({"a": {"b": 1}}, "args.a: must be text, a number, true, false or a list of these, not a mapping"),
        ({"a": [[1]]}, "args.a[0]: must be text, a number, true, false or a list of these, not a list"),
        ({"a": []}, "args.a: is an empty list; write true for a bare flag, or leave it out"),
        ({"a": "x\0y"}, "args.a: must not hold a NUL character: no program can be given one"),
        ({"a": "\ud800"}, "args.a: must not hold half a surrogate pair: it is not a character"),
        ({"--a": 1}, "args.--a: the -- is put in front by cloudtrain, write 'a'; or use a list for full control"),
        ({1: 1}, "args.1: a name must be text, not 1"),
        ([True], "args[0]: a list of words cannot hold a switch; write the text 'true'"),
        ([None], "args[0]: is empty; write '' if an empty argument is meant"),
        ("--x", "args: must be a mapping such as {epochs: 5}, or a list of words, not '--x'"),
    ],
)
def test_bad_args(args: Any, line: str) -> None:
    assert refusal(args=args) == [line]


def test_references_name_what_is_declared() -> None:
    places = {"data": {"train": {"uri": "d"}}, "outputs": {"plots": "o"}}
    good = "${data.train} ${outputs.plots} ${checkpoint} ${model} ${output} ${data_dir} ${model.name} ${{data.x}}"
    assert job(args=[good], environment={"env": {"A": good}}, **places).argv == [good]
    lines = refusal(
        args={"a": "${data.tran}", "b": ["${data}"], "c": "${outputs.x}"},
        environment={"env": {"A": "${data.}"}},
        **places,
    )
    assert lines == [
        "args.a: ${data.tran} names nothing in data: did you mean 'train'?",
        "args.b[0]: ${data} names nothing in data: declared here: train",
        "args.c: ${outputs.x} names nothing in outputs: declared here: plots",
        "environment.env.A: ${data.} names nothing in data: declared here: train",
    ]
    assert refusal(args=["${data.x}"]) == ["args[0]: ${data.x} names nothing in data: no data are declared"]


def test_processes_follow_the_framework_and_the_machine() -> None:
    machine = {"accelerator": "T4", "accelerators_per_node": 4}
    assert job(resources=machine).processes == 4
    assert job(resources={**machine, "processes_per_node": 2}).processes == 2
    assert job(resources=machine, framework="jax").processes == 1
    assert job(framework="jax").process_shape == "per-node"
    assert job(framework="deepspeed").process_shape == "per-accelerator"
    assert refusal(framework="jax", resources={"processes_per_node": 2}) == [
        "resources.processes_per_node: must be 1 or left out: jax runs one process per node"
    ]
    assert refusal(resources={"accelerators_per_node": 2})[0].startswith("resources.accelerators_per_node: needs")


@pytest.mark.parametrize("nodes", [0, -1, True, "2", 2.0, [2], 10_001])
def test_numbers_are_numbers(nodes: Any) -> None:
    (line,) = refusal(resources={"nodes": nodes})
    assert line.startswith("resources.nodes: must be a whole number of at least 1")


def test_values_per_provider() -> None:
    made = job(
        data={"one": {"uri": "s3://b"}, "each": {"uri": {"local": "d", "vertex": "gs://b"}}},
        environment={"image": {"vertex": "img"}, "secrets": {"KEY": {"local": "env:KEY", "vertex": "v"}}},
        resources={"instance": {"sagemaker": "ml.x"}},
    )
    assert [made.data["one"].uri_for("local"), made.data["each"].uri_for("local")] == ["s3://b", "d"]
    assert made.data["each"].uri_for("sagemaker") is None
    assert [made.environment.image_for("vertex"), made.environment.image_for("local")] == ["img", None]
    assert made.resources.instance_for("sagemaker") == "ml.x"
    assert made.environment.secrets_for("azureml") == {"KEY": None}
    assert refusal(data={"x": {"uri": {"sagmaker": "s3://b"}}}) == [
        "data.x.uri.sagmaker: unknown provider, did you mean 'sagemaker'?"
    ]
    assert refusal(data={"x": {"uri": {}}})[0].startswith("data.x.uri: is empty")
    assert refusal(environment={"secrets": {"KEY": {"local": "hunter2"}}}) == [  # what might be the secret is not shown
        "environment.secrets.KEY.local: must name a variable of your own shell, as env:NAME"
    ]


@pytest.mark.parametrize("name", ["RANK", "WORLD_SIZE", "MASTER_ADDR", "NODE_RANK", "CLOUDTRAIN_X", "PET_NNODES"])
def test_the_launchers_variables_are_its_own(name: str) -> None:
    line = "is set by the launcher on every process and cannot be given here"
    assert refusal(environment={"env": {name: "1"}}) == [f"environment.env.{name}: {line}"]
    assert refusal(environment={"secrets": {name: "x"}}) == [f"environment.secrets.{name}: {line}"]


def test_names_in_the_environment_do_not_clash() -> None:
    assert job(environment={"env": {"SM_CHANNEL_TRAIN": "${data.t}"}}, data={"t": {"uri": "d"}})
    assert refusal(environment={"env": {"A": "1"}, "secrets": {"A": "x"}}) == [
        "environment.secrets.A: is also in env; keep it in one of the two"
    ]
    assert refusal(outputs={"m": "x", "M": "y"}) == [
        "outputs.M: differs from 'm' only in case; both would be M in the environment"
    ]
    assert refusal(data={"a-b": {"uri": "x"}}) == ["data.a-b: a channel name must be an identifier such as train"]
    assert refusal(environment={"env": {"A B": "1"}})[0].startswith("environment.env.'A B': a variable's name must be")


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10m", 600), ("6h", 21600), ("2d", 172800), ("007m", 420)])
def test_durations(text: str, seconds: int) -> None:
    kept = job(limits={"runtime": text}).limits.runtime
    assert kept == text
    assert isinstance(kept, Duration)
    assert kept.seconds == seconds


@pytest.mark.parametrize("wrong", ["90", 90, "1.5h", "1h30m", "0s", "", "10 m", "10M", "-1s", "s", "1w", True, ["1s"]])
def test_bad_durations(wrong: Any) -> None:
    (line,) = refusal(limits={"runtime": wrong})
    assert line.startswith("limits.runtime: must be a duration such as 90s, 10m, 6h or 2d, not")
    assert ("write 90s" in line) == (str(wrong) == "90")


@pytest.mark.parametrize(
    ("spelling", "name"),
    [("T4", "T4"), ("NVIDIA_TESLA_T4", "T4"), ("a100-80gb", "A100-80GB"), ("NVIDIA_H100_80GB", "H100-80GB"),
     ("NVIDIA_TESLA_A100", "A100-40GB"), ("RTX PRO 6000", "RTX-PRO-6000")],
)  # fmt: skip
def test_accelerators_have_one_spelling(spelling: str, name: str) -> None:
    assert job(resources={"accelerator": spelling}).resources.accelerator == name
    assert job(resources={"accelerator": spelling}) == job(resources={"accelerator": name})


def test_unknown_accelerators() -> None:
    line = "resources.accelerator: 'A100' comes in more than one size, write A100-40GB or A100-80GB"
    assert refusal(resources={"accelerator": "A100"}) == [line]
    assert "did you mean 'H100-80GB'?" in refusal(resources={"accelerator": "H10-80GB"})[0]
    assert "known: T4, V100-16GB" in refusal(resources={"accelerator": "quantum"})[0]


def test_no_spelling_in_the_catalogue_means_two_accelerators() -> None:
    rows = accelerators()
    assert len({row.name for row in rows}) == len(rows)
    for row in rows:
        assert all(accelerator(name) == row for name in (row.name, *row.aliases))


def test_overrides_are_what_json_can_hold() -> None:
    native = {"a": [1, 2.5, None, True, {"b": "1"}]}
    assert job(overrides={"vertex": native}).overrides["vertex"] == native
    assert refusal(overrides={"local": {}})[0].startswith("overrides.local: unknown provider")
    assert refusal(overrides={"vertex": {"a": [float("nan")]}})[0].startswith(
        "overrides.vertex.a[0]: must be what JSON"
    )
    assert refusal(overrides={"vertex": {"a": {1: 2}}}) == ["overrides.vertex.a.1: a key must be text, not 1"]
    assert refusal(overrides={"vertex": []}) == ["overrides.vertex: must be a mapping of native fields, not a list"]
    endless: dict[str, Any] = {}
    endless["a"] = endless
    assert "more than 64 levels deep" in refusal(overrides={"vertex": endless})[0]


def test_unknown_fields_get_the_nearest_name() -> None:
    assert refusal(resorces={}) == ["resorces: unknown key, did you mean 'resources'?"]
    assert refusal(spot={"zzz": 1}) == ["spot.zzz: unknown key; known here: enabled, max_wait"]


def test_a_job_cannot_be_changed_but_copied() -> None:
    made = job(args={"epochs": 5, "lr": 0.1}, data={"train": {"uri": {"local": "a", "vertex": "gs://b"}}})
    with pytest.raises(ValidationError):
        made.name = "other"  # type: ignore[misc]
    other = made.with_(
        name="other", resources={"nodes": 3}, args={"epochs": 1}, data={"train": {"uri": {"local": "z"}}}
    )
    assert (other.name, other.resources.nodes, other.argv) == ("other", 3, ["--epochs", "1", "--lr", "0.1"])
    assert (other.data["train"].uri_for("local"), other.data["train"].uri_for("vertex")) == ("z", "gs://b")
    assert made.name == "digits"
    assert other.with_(entry=None, module="a.b").start == "a.b"
    with pytest.raises(SpecError, match=r"resources\.nodes: must be a whole number of at least 1, not 0"):
        made.with_(resources={"nodes": 0})


def test_sections_can_be_made_by_themselves() -> None:
    made = job(resources=Resources(nodes=2), data={"train": Channel(uri="x")}, args=["${data.train}"])
    assert made == job(resources={"nodes": 2}, data={"train": {"uri": "x"}}, args=["${data.train}"])
    with pytest.raises(JobFileError, match="nodes: must be a whole number"):
        Resources(nodes=0)


def test_folders_are_seen_from_the_job_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "jobs" / "job.yaml"
    file.parent.mkdir()
    file.write_text("name: a\nentry: t.py\ncode: ../src\n")
    monkeypatch.chdir(tmp_path)
    loaded = Job.load("jobs/job.yaml")
    monkeypatch.chdir("/")
    assert (loaded.folder, loaded.code_folder) == (tmp_path / "jobs", tmp_path / "src")
    assert loaded.file == Path("jobs/job.yaml")
    made = Job(name="a", entry="t.py", code="../src")
    assert (made.folder, made.file) == (Path("/"), None)
    assert made == loaded
    assert pickle.loads(pickle.dumps(loaded)).folder == copy.deepcopy(loaded).folder == loaded.with_(name="b").folder


def test_files_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "trian.py").touch()
    (tmp_path / "req").mkdir()
    text = "name: a\nentry: train.py\nenvironment:\n  requirements: req\n"
    found = [str(problem) for problem in Job.parse(text, tmp_path / "job.yaml").check_files()]
    assert found == [
        f"{tmp_path}/job.yaml:2:8: entry: train.py is not in {tmp_path}, did you mean 'trian.py'?",
        f"{tmp_path}/job.yaml:4:17: environment.requirements: req in {tmp_path} is not a file",
    ]
    (task,) = Job.parse("name: a\ntask: t.py:T\n", tmp_path / "job.yaml").check_files()
    assert (task.line, task.column, task.key) == (2, 7, "task")
    (code,) = Job.parse("name: a\ncode: nowhere\nentry: t.py\n", tmp_path / "job.yaml").check_files()
    assert (code.line, code.column, code.message) == (2, 7, f"{tmp_path}/nowhere is not there")
    assert job(entry="trian.py", code=str(tmp_path)).check_files() == ()


def test_a_job_file_error_survives_another_process() -> None:
    with pytest.raises(JobFileError) as caught:
        Job.parse("name: A\nentry: t.py\n", "j.yaml")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.problems, str(again)) == (caught.value.problems, str(caught.value))
