"""Channels that lie here alone, for a cloud: where they go, and what that depends on."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

import cloudtrain as ct
from cloudtrain.errors import MissingError
from cloudtrain.providers.base import Request
from cloudtrain.spec.problems import JobFileError

STORES = {
    "sagemaker": "s3://bucket/cloudtrain",
    "vertex": "gs://bucket/cloudtrain",
    "azureml": "azureml://datastores/workspaceblobstore/paths/cloudtrain",
}
SETTINGS = {
    "sagemaker": {"region": "eu-west-1", "role": "arn:aws:iam::111122223333:role/T", "bucket": "bucket"},
    "vertex": {"project": "p-1", "region": "europe-west4", "bucket": "bucket"},
    "azureml": {
        "subscription": "11111111-2222-3333-4444-555555555555",
        "resource_group": "ml",
        "workspace": "west",
    },
}
IMAGE = {"environment": {"image": "europe-west4-docker.pkg.dev/p-1/images/train:3"}}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLOUDTRAIN_HOME", str(tmp_path / "home"))
    folder = tmp_path / "project"
    (folder / "data/sub").mkdir(parents=True)
    (folder / ".cloudtrainignore").write_text("data/\n")
    (folder / "train.py").write_text("print()\n")
    (folder / "data/a.bin").write_bytes(b"aaa")
    (folder / "data/sub/b.bin").write_bytes(b"bb")
    (folder / "job.yaml").write_text("name: digits\nentry: train.py\ndata: {train: {uri: {local: data}}}\n")
    return folder


def request(project: Path, provider: str = "sagemaker") -> Request:
    job = ct.Job.load(project / "job.yaml")
    return ct.render(job.with_(**IMAGE) if provider == "vertex" else job, provider, settings=SETTINGS[provider])


def place(made: Request) -> str:
    (to,) = [shipped.to for shipped in made.ships if shipped.kind == "data"]
    return to


def by_hand(**files: bytes) -> str:
    """The digest as the module's text describes it: names and contents, in the order of the names."""
    lines = "".join(f"{hashlib.sha256(content).hexdigest()} {name}\n" for name, content in sorted(files.items()))
    return hashlib.sha256(b"cloudtrain-data 1\n" + lines.encode()).hexdigest()[:32]


@pytest.mark.parametrize("provider", STORES)
def test_it_goes_to_a_folder_named_by_its_content(project: Path, provider: str) -> None:
    made = request(project, provider)
    digest = by_hand(**{"a.bin": b"aaa", "sub/b.bin": b"bb"})
    assert place(made) == f"{STORES[provider]}/data/{digest}/"
    assert place(made) in str(made.native)
    assert any(f"data.train: 2 files, 5 bytes, of {project / 'data'} go to" in note for note in made.notes)


def test_times_do_not_count_and_contents_do(project: Path) -> None:
    before = request(project)
    os.utime(project / "data/a.bin", (1, 1))
    assert request(project) == before
    (project / "data/a.bin").write_bytes(b"aab")
    after = request(project)
    assert place(after) != place(before)
    assert after.name != before.name


def test_a_channel_of_one_file(project: Path) -> None:
    (project / "job.yaml").write_text("name: digits\nentry: train.py\ndata: {train: {uri: {local: data/a.bin}}}\n")
    assert place(request(project)).endswith(f"/{by_hand(**{'a.bin': b'aaa'})}/")


@pytest.mark.parametrize("uri", ["{local: nowhere}", "data", "{local: data, vertex: gs://bucket/d/}"])
def test_what_is_not_here_or_said_of_all_clouds_is_refused_as_before(project: Path, uri: str) -> None:
    (project / "job.yaml").write_text(f"name: digits\nentry: train.py\ndata: {{train: {{uri: {uri}}}}}\n")
    if "vertex" in uri:
        assert [shipped.kind for shipped in request(project, "vertex").ships] == ["code", "spec"]
        return
    with pytest.raises(JobFileError, match=r"data\.train\.uri"):
        request(project)


def test_a_place_of_its_own_wins(project: Path) -> None:
    uri = "{local: data, sagemaker: s3://mine/train/}"
    (project / "job.yaml").write_text(f"name: digits\nentry: train.py\ndata: {{train: {{uri: {uri}}}}}\n")
    made = request(project)
    assert "s3://mine/train/" in str(made.native)
    assert [shipped.kind for shipped in made.ships] == ["code", "spec"]


def test_what_cannot_be_read_is_named(project: Path) -> None:
    (project / "data/gone").symlink_to("data/nowhere")
    (project / "data/a.bin").unlink()
    (project / "data/a.bin").mkdir()
    made = request(project)
    assert place(made).endswith(f"/{by_hand(**{'sub/b.bin': b'bb'})}/")  # neither is an object
    if os.geteuid():
        (project / "data/sub").chmod(0)
        with pytest.raises(MissingError, match="cannot read"):
            request(project)
