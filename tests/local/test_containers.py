"""What `run --as` writes for a node before it starts, where a bucket can hold what links cannot."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from cloudtrain import Job, SpecError
from cloudtrain.providers.local.container import fill
from cloudtrain.providers.local.options import LocalOptions
from cloudtrain.providers.local.rehearsal import Rehearsal, rehearse
from cloudtrain.providers.local.translate import Machine, translate
from cloudtrain.providers.shipping import bundle_of
from cloudtrain.record.folder import RunFolder
from cloudtrain.spec.problems import JobFileError
from cloudtrain_launch import objects
from tests.local.project import require

RUN = "test-20261130-201500-k3f9"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDTRAIN_HOME", str(tmp_path / "home"))


def _job(folder: Path, text: str) -> Job:
    folder.mkdir()
    (folder / "train.py").write_text("print()\n")
    return Job.parse(f"name: test\nentry: train.py\n{text}", folder / "job.yaml")


def _rehearsed(job: Job, cloud: Any, **options: Any) -> tuple[Rehearsal, RunFolder, list[str]]:
    """The run's folder as it is when the nodes are about to start."""
    chosen = LocalOptions(as_=cloud, **options)
    bundle = bundle_of(job)
    rehearsal = rehearse(job, chosen, bundle, RUN)
    folder = RunFolder.create(job.folder, RUN)
    request = translate(
        job, chosen, folder=folder, temporary=job.folder / "tmp", checkpoints=folder.path / "checkpoints",
        machine=Machine(2), token="t", rehearsal=rehearsal,
    )  # fmt: skip
    for node in range(len(rehearsal.contracts)):
        folder.node(node).mkdir()
    return rehearsal, folder, fill(rehearsal, request, bundle)


def _write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_channel_inside_another_one(tmp_path: Path) -> None:
    places = "\n".join(
        f"  {name}: {{uri: {{vertex: 'gs://bkt/{place}', local: {name}}}}}"
        for name, place in {"outer": "all/", "inner": "all/sub/deep/", "single": "all/one.csv"}.items()
    )
    job = _job(tmp_path / "p", f"resources: {{nodes: 2}}\ndata:\n{places}\n")
    _write(tmp_path / "p/outer/file", "outer")
    _write(tmp_path / "p/outer/sub/other", "other")
    _write(tmp_path / "p/outer/sub/deep/hidden", "hidden")
    _write(tmp_path / "p/inner/file", "inner")
    _write(tmp_path / "p/single", "1,2")
    _, folder, _ = _rehearsed(job, "vertex")
    for node in range(2):
        bucket = folder.node(node) / "gcs/bkt/all"
        names = {"file": "outer", "sub/other": "other", "sub/deep/file": "inner", "one.csv": "1,2"}
        assert {name: (bucket / name).read_text() for name in names} == names
        assert not (bucket / "sub/deep/hidden").exists()
    assert sorted(path.name for path in (tmp_path / "p/outer").rglob("*")) == ["deep", "file", "hidden", "other", "sub"]


def test_two_channels_at_one_place(tmp_path: Path) -> None:
    text = "data: {one: {uri: {vertex: 'gs://bkt/x/', local: d1}}, two: {uri: {vertex: 'gs://bkt/x/', local: LOCAL}}}\n"
    with pytest.raises(SpecError, match=r"data\.(one|two) has the same place there as another channel"):
        _rehearsed(_job(tmp_path / "p", text.replace("LOCAL", "d2")), "vertex")
    _write(tmp_path / "q/d1/file", "both")
    job = Job.parse(f"name: test\nentry: train.py\n{text.replace('LOCAL', 'd1')}", tmp_path / "q/job.yaml")
    _write(tmp_path / "q/train.py")
    _, folder, _ = _rehearsed(job, "vertex")
    assert (folder.node(0) / "gcs/bkt/x/file").read_text() == "both"


def test_results_that_hold_data_are_refused(tmp_path: Path) -> None:
    text = "data: {old: {uri: {vertex: 'gs://bkt/m/old/', local: d}}}\noutputs: {tables: {vertex: 'gs://bkt/m/'}}\n"
    with pytest.raises(SpecError, match=r"data\.old lies inside outputs\.tables there"):
        _rehearsed(_job(tmp_path / "p", text), "vertex")
    assert not (tmp_path / "p/m").exists()


def test_a_single_object_is_in_a_folder_on_sagemaker(tmp_path: Path) -> None:
    job = _job(tmp_path / "p", "data: {train: {uri: {local: train.csv}}}\n")
    _write(tmp_path / "p/train.csv", "1,2")
    _, folder, _ = _rehearsed(job, "sagemaker")
    assert (folder.node(0) / "opt/ml/input/data/train/train.csv").read_text() == "1,2"


@pytest.mark.parametrize(("local", "shares"), [("d", [["a", "linked/c"], ["b"]]), ("d/a", [["a"], []])])
def test_shares_of_links_and_of_a_single_object(local: str, shares: list[list[str]], tmp_path: Path) -> None:
    """Those that SageMaker makes itself are the ones that the launcher makes elsewhere."""
    job = _job(
        tmp_path / "p", f"resources: {{nodes: 2}}\ndata: {{train: {{uri: {{local: {local}}}, shard: by-object}}}}\n"
    )
    _write(tmp_path / "p/.cloudtrainignore", "/d/\n")
    for name in ("d/a", "d/b", "elsewhere/c"):
        _write(tmp_path / "p" / name, name)
    for link, target in {"linked": "../elsewhere", "loop": ".", "gone": "nowhere"}.items():
        (tmp_path / "p/d" / link).symlink_to(target)
    _, folder, notes = _rehearsed(job, "sagemaker")
    assert [objects.keys(str(folder.node(node) / "opt/ml/input/data/train")) for node in range(2)] == shares
    assert any("1 objects for 2 nodes" in note for note in notes) == (local == "d/a")
    if local == "d":
        every = objects.keys(str(tmp_path / "p/d"))
        assert [every[node::2] for node in range(2)] == shares


def test_names_in_capitals_and_more_nodes_than_objects(tmp_path: Path) -> None:
    text = "resources: {nodes: 3}\ndata: {Train: {uri: {local: d}, shard: by-object}}\noutputs: {Tables: {local: t}}\n"
    for cloud, place in {"sagemaker": "opt/ml/input/data/Train", "vertex": "gcs", "azureml": "mnt"}.items():
        job = _job(tmp_path / cloud, text)
        _write(tmp_path / cloud / "d/one", "1")
        rehearsal, folder, notes = _rehearsed(job, cloud)
        assert [note for note in notes if "1 objects for 3 nodes" in note]
        found = [len(list((folder.node(node) / place).rglob("one"))) for node in range(3)]
        assert found == ([1, 0, 0] if cloud == "sagemaker" else [0, 0, 0])  # rglob follows no links
        assert rehearsal.is_shared_out_by_launcher("data:train") == (cloud != "sagemaker")


def test_files_and_the_request_are_what_translation_says(tmp_path: Path) -> None:
    job = _job(tmp_path / "p", "resources: {nodes: 12}\n")
    rehearsal, folder, _ = _rehearsed(job, "sagemaker")
    for node in range(12):
        text = (folder.node(node) / "opt/ml/input/config/resourceconfig.json").read_text()
        assert json.loads(text)["current_host"] == f"algo-{node + 1}"
        assert (folder.node(node) / "opt/ml/input/data/cloudtrain_code/launch.py").is_file()
    assert json.loads((folder.path / "request.json").read_text()) == rehearsal.request.native
    assert rehearsal.request.native["ResourceConfig"]["InstanceCount"] == 12


def test_the_command_line_decides_what_the_request_is_for(tmp_path: Path) -> None:
    job = _job(tmp_path / "p", "resources: {nodes: 2}\nargs: {a: 1, b: [x, y]}\n")
    rehearsal, _, _ = _rehearsed(job, "azureml", nodes=3, processes=2, args=("--c", "$HOME"))
    assert rehearsal.request.native["resources"]["instance_count"] == 3
    spec = rehearsal.request.spec
    assert (spec["nodes"], spec["processes_per_node"]) == (3, 2)
    assert spec["args"] == ["--a", "1", "--b", "x", "y", "--c", "$HOME"]


def test_arguments_as_written_and_secrets_of_the_shell(tmp_path: Path) -> None:
    text = """
args: {a: 007, b: 1e10, c: -0.1, d: 1_000, e: 0x1F, l: '', m: true, n: "true", o: false,
       p: [1.10, "", '--', 1.], s: .inf}
environment: {secrets: {KEY: 'env:KEY'}}
"""
    job = _job(tmp_path / "p", text)
    rehearsal, folder, notes = _rehearsed(job, "vertex")
    assert rehearsal.request.spec["args"] == [
        "--a", "007", "--b", "1e10", "--c", "-0.1", "--d", "1_000", "--e", "0x1F", "--l", "", "--m", "--n", "true",
        "--p", "1.10", "", "--", "1.", "--s", ".inf",
    ]  # fmt: skip
    assert json.loads((folder.path / "shipped/spec/spec.json").read_text())["args"] == job.argv
    assert any("environment.secrets.KEY" in note for note in rehearsal.notes) and not notes


@pytest.mark.parametrize(
    ("cloud", "overrides"),
    [
        ("sagemaker", "{ResourceConfig: {InstanceCount: 1}}"),
        ("sagemaker", "{InputDataConfig: []}"),
        ("vertex", "{jobSpec: {workerPoolSpecs: []}}"),
        ("azureml", "{resources: {instance_count: 1}}"),
        ("azureml", "{code: null}"),
    ],
)
def test_overrides_that_leave_too_few_nodes_or_nothing_to_start(tmp_path: Path, cloud: str, overrides: str) -> None:
    job = _job(tmp_path / "p", f"resources: {{nodes: 2}}\noverrides: {{{cloud}: {overrides}}}\n")
    with pytest.raises(JobFileError, match=rf"overrides\.{cloud}\."):
        _rehearsed(job, cloud)


def test_overrides_are_held_against_the_schema(tmp_path: Path) -> None:
    require(importlib.util.find_spec("botocore") is not None, "botocore is not installed")
    job = _job(tmp_path / "p", "overrides: {sagemaker: {ResourceConfigg: {}}}\n")
    with pytest.raises(JobFileError, match=r"overrides\.sagemaker\.ResourceConfigg"):
        _rehearsed(job, "sagemaker")
