"""Folders that are views of the storage account, and log files that grow in it: with a real Azurite."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import requests

from cloudtrain.emulator.azureml.blobs import ACCOUNT, KEY, Blobs, Place
from cloudtrain.emulator.azureml.jobs import Job
from cloudtrain.emulator.azureml.logfiles import LogFiles, log_name
from cloudtrain.emulator.azureml.mounts import Mounts
from cloudtrain.emulator.base import Clock
from cloudtrain.emulator.faults import JobFaults
from tests.emulator.azureml.emulated import Emulated, client, vendor
from tests.emulator.azureml.trainings import write_form

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the vendor's packages, by each other


@pytest.fixture
def blobs(azure: Emulated) -> Iterator[Blobs]:
    found = Blobs(azure.plane.blob_server, ACCOUNT, KEY)
    yield found
    found.close()


@pytest.fixture
def place(blobs: Blobs) -> Place:
    """The root of a new container."""
    container = f"test-{uuid4()}"
    blobs.make(container)
    return Place(container, "")


def below(place: Place, path: str) -> Place:
    return Place(place.container, path)


def written(blobs: Blobs, place: Place, files: dict[str, str], folder: Path) -> None:
    for name, text in files.items():
        file = folder / "source"
        file.write_text(text)
        blobs.put(below(place, name), file)


def content(blobs: Blobs, place: Place, folder: Path) -> dict[str, str]:
    """Of all blobs below it."""
    target = folder / str(uuid4())
    blobs.fetch_all(place, blobs.names(place), target)
    return {path.relative_to(target).as_posix(): path.read_text() for path in target.rglob("*") if path.is_file()}


def _nothing_is_left_out(path: str, kind: str) -> None:
    raise AssertionError(f"{path} is {kind}")


def test_what_changes_here_changes_there(blobs: Blobs, place: Place, tmp_path: Path) -> None:
    written(blobs, place, {"run/old.txt": "old", "run/deep/er.txt": "deep", "running/x": "other"}, tmp_path)
    mounts = Mounts(tmp_path / "data", blobs, _nothing_is_left_out)
    folder = mounts.written(below(place, "run"))
    assert sorted(path.name for path in folder.rglob("*") if path.is_file()) == ["er.txt", "old.txt"]
    (folder / "old.txt").unlink()
    (folder / "deep/er.txt").rename(folder / "moved.txt")
    (folder / "new.txt").write_text("new")
    mounts.sync(final=True)
    assert content(blobs, place, tmp_path) == {"run/moved.txt": "deep", "run/new.txt": "new", "running/x": "other"}


def test_a_file_that_is_being_written_waits(blobs: Blobs, place: Place, tmp_path: Path) -> None:
    mounts = Mounts(tmp_path / "data", blobs, _nothing_is_left_out)
    file = mounts.written(below(place, "run")) / "model.bin"
    file.write_text("half")
    mounts.sync()
    assert content(blobs, place, tmp_path) == {}
    file.write_text("half and half")
    mounts.sync()
    assert content(blobs, place, tmp_path) == {}
    mounts.sync()
    assert content(blobs, place, tmp_path) == {"run/model.bin": "half and half"}


@pytest.mark.parametrize("order", [("run", "run/deep"), ("run/deep", "run")])
def test_one_mount_in_another(blobs: Blobs, place: Place, tmp_path: Path, order: tuple[str, str]) -> None:
    written(blobs, place, {"run/deep/er.txt": "deep"}, tmp_path)
    mounts = Mounts(tmp_path / "data", blobs, _nothing_is_left_out)
    folders = {path: mounts.written(below(place, path)) for path in order}
    (folders["run/deep"] / "er.txt").write_text("deeper")
    assert (folders["run"] / "deep/er.txt").read_text() == "deeper"
    (folders["run"] / "beside.txt").write_text("beside")
    mounts.sync(final=True)
    assert content(blobs, place, tmp_path) == {"run/deep/er.txt": "deeper", "run/beside.txt": "beside"}


def test_reading(blobs: Blobs, place: Place, tmp_path: Path) -> None:
    written(blobs, place, {"data/a/1.csv": "1", "data/2.csv": "2", "data/a/": "", "single.csv": "s"}, tmp_path)
    mounts = Mounts(tmp_path / "data", blobs, _nothing_is_left_out)
    folder = mounts.read(below(place, "data"))
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.csv")) == ["2.csv", "a/1.csv"]
    assert mounts.read(below(place, "single.csv")).read_text() == "s"
    with pytest.raises(LookupError, match="nothing lies at none"):
        mounts.read(below(place, "none"))


KINDS = ("a symbolic link", "no ordinary file")
LINKS = """
import os, pathlib

def main(env):
    outside = pathlib.Path(env["OUTSIDE"])
    for folder in map(pathlib.Path, (env["MOUNTED"], env["UPLOADED"], "outputs")):
        folder.mkdir(exist_ok=True)
        folder.joinpath("own.txt").write_text("own")
        folder.joinpath("latest").symlink_to("own.txt")
        folder.joinpath("file").symlink_to(outside / "secret.txt")
        folder.joinpath("folder").symlink_to(outside)
        folder.joinpath("nowhere").symlink_to("gone")
        os.mkfifo(folder / "pipe")
    pathlib.Path("logs").symlink_to(outside)
    return 0
"""


def test_links_bring_nothing_of_this_machine_into_the_account(azure: Emulated, blobs: Blobs, tmp_path: Path) -> None:
    """A mount of the service's takes none. Whatever is left of an upload, it is not what lies outside the folder."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.txt").write_text("not the job's")
    (tmp_path / "code").mkdir()
    (tmp_path / "code/launch.py").write_text(LINKS)
    store = "azureml://datastores/workspaceblobstore/paths/links"
    form = {
        "type": "command",
        "name": "links",
        "experiment_name": "trials",
        "command": 'env MOUNTED="${{outputs.mounted}}" UPLOADED="${{outputs.uploaded}}" python3 -u launch.py',
        "code": "./code",
        "environment": {"image": "repo/image:1"},
        "environment_variables": {"OUTSIDE": str(tmp_path / "outside")},
        "resources": {"instance_count": 1},
        "outputs": {
            "mounted": {"type": "uri_folder", "path": f"{store}/mounted/", "mode": "rw_mount"},
            "uploaded": {"type": "uri_folder", "path": f"{store}/uploaded/", "mode": "upload"},
        },
    }
    client().jobs.create_or_update(vendor().load_job(write_form(tmp_path, form)))
    ended = azure.until_over("links")[-1]
    assert ended == "Completed", azure.log("links", "user_logs/std_log.txt")

    assert azure.blobs("links/") == ["links/mounted/own.txt", "links/uploaded/own.txt"]
    artefacts = Place("azureml", "ExperimentRun/dcid.links")
    kept = [name for name in blobs.names(artefacts) if name.startswith(("outputs", "logs"))]
    assert kept == ["outputs/own.txt"]
    said = [warning["message"] for warning in azure.details("links")["warnings"]]
    folders = ("links/mounted", "links/uploaded", f"{artefacts.path}/outputs")
    links = {f"{folder}/{name}" for folder in folders for name in ("latest", "file", "folder", "nowhere")}
    of_a_link, of_a_pipe = (f" is {kind}, which cannot be stored: it is left out" for kind in KINDS)
    assert sorted(said) == sorted(
        [f"{name}{of_a_link}" for name in (*links, f"{artefacts.path}/logs/")]
        + [f"{folder}/pipe{of_a_pipe}" for folder in folders]
    )
    log = azure.log("links", "system_logs/lifecycler/lifecycler.log")
    assert [log.count(message) for message in said] == [1] * len(said)


def test_a_link_in_the_place_of_a_file_is_none_to_a_later_start(blobs: Blobs, place: Place, tmp_path: Path) -> None:
    """In a later start of a job, which finds what the first one has left."""
    (tmp_path / "secret.txt").write_text("not the job's")
    mounts = Mounts(tmp_path / "data", blobs, lambda *_: None)
    written(blobs, place, {"run/old.txt": "old", "run/file.txt": "1"}, tmp_path)
    folder = mounts.written(below(place, "run"))
    (folder / "file.txt").unlink()
    (folder / "file.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(LookupError, match=r"nothing lies at run/file\.txt"):
        mounts.read(below(place, "run/file.txt"))
    mounts.sync(final=True)
    assert content(blobs, place, tmp_path) == {"run/old.txt": "old"}


@pytest.mark.parametrize("fault", ["", "late", "empty-pages", "out-of-order"])
def test_logs_are_whole_whatever_is_wrong(blobs: Blobs, place: Place, tmp_path: Path, fault: str) -> None:
    job = Job("a-job", {}, {}, JobFaults())
    logs = LogFiles(job, blobs, below(place, "dcid.a-job"), Clock(100), frozenset({fault} - {""}))
    names = [log_name(node, 2, 0) for node in range(2)]
    files = [tmp_path / f"{node}.log" for node in range(2)]
    for name, file in zip(names, files, strict=True):
        logs.follow(name, file)
    assert list(job.log_files)[1:] == ["user_logs/std_log_process_00.txt", "user_logs/std_log_process_01.txt"]
    for step in range(6):
        for file in files:
            with file.open("a") as out:
                out.write(f"step {step}\n")
        logs.pump()
        seen = [requests.get(job.log_files[name], timeout=30).text for name in names]
        whole = "".join(f"step {number}\n" for number in range(step + 1))
        assert all(whole.startswith(text) for text in seen)
        if not fault:
            assert seen == [whole, whole]
    logs.end()
    logs.settle()
    assert [requests.get(job.log_files[name], timeout=30).text for name in names] == [whole, whole]
    part = requests.get(job.log_files[names[0]], headers={"Range": "bytes=7-"}, timeout=30)
    assert (part.status_code, part.text) == (206, whole[7:])


def test_an_unknown_state_is_shown_for_a_while() -> None:
    job = Job("odd", {}, {}, JobFaults(unknown_state="Hibernating"))
    job.move("Queued")
    assert job.shown_state() == "Queued"
    job.move("Running")
    assert [job.shown_state() for _ in range(5)] == ["Hibernating"] * 3 + ["Running"] * 2


def _ends(job: Job) -> None:
    job.move("Completed")


def _cancels(job: Job) -> None:
    job.cancel()


@pytest.mark.parametrize("calls", [(_ends, _cancels), (_cancels, _ends)])
def test_what_is_over_stays_over(calls: tuple[Callable[[Job], None], Callable[[Job], None]]) -> None:
    job = Job("done", {}, {}, JobFaults())
    job.move("Running")
    threads = [threading.Thread(target=call, args=(job,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    job.move("Running")
    assert job.state == "Completed"
    assert job.ended is not None and job.ended <= time.time()
