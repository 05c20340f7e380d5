"""What a run has left in Cloud Storage, and how it comes here."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import google_crc32c
import pytest

from cloudtrain.errors import MissingError, RefusedError, SpecError, UnreachableError
from cloudtrain.providers.port import Artefact, Client
from tests.clients.vertex.conftest import BUCKET
from tests.clients.vertex.service import Service
from tests.providers.vertex.jobs import CPU, requested, variables

Connect = Callable[[], Client]


def put(bucket: Any, uri: str, content: bytes) -> None:
    bucket.blob(uri.removeprefix(f"gs://{BUCKET}/")).upload_from_string(content)


def test_every_folder_of_the_run(rest: None, bucket: Any, connect: Connect) -> None:
    request = requested(CPU, outputs={"plots": f"gs://{BUCKET}/theirs/p", "TABLES": {"local": "tables"}})
    folders = variables(request)
    client = connect()
    made = client.create(request)
    assert list(client.artefacts(made.native_id)) == []
    put(bucket, folders["CLOUDTRAIN_MODEL_DIR"] + "model.pt", b"weights")
    put(bucket, folders["CLOUDTRAIN_MODEL_DIR"] + "sub/a b.txt", b"")
    put(bucket, folders["CLOUDTRAIN_MODEL_DIR"] + "sub/", b"")  # stands for a folder
    put(bucket, folders["CLOUDTRAIN_OUTPUT_DIR"] + "out.csv", b"1,2")
    put(bucket, folders["CLOUDTRAIN_METRICS_DIR"] + "rank0.jsonl", b"{}")
    put(bucket, folders["CLOUDTRAIN_CHECKPOINT_DIR"] + "step-7/0.pt", b"12345")
    put(bucket, f"gs://{BUCKET}/theirs/p/x.png", b"png")
    put(bucket, f"gs://{BUCKET}/theirs/pp/no.png", b"of somebody else")
    put(bucket, folders["CLOUDTRAIN_OUTPUT_TABLES"].rstrip("/") + "/t.csv", b"t")

    found = {(one.kind, one.path): one.size for one in client.artefacts(made.native_id)}

    assert found == {
        ("model", "model.pt"): 7,
        ("model", "sub/a b.txt"): 0,
        ("output", "out.csv"): 3,
        ("metrics", "rank0.jsonl"): 2,
        ("checkpoints", "step-7/0.pt"): 5,
        ("outputs/plots", "x.png"): 3,
        ("outputs/TABLES", "t.csv"): 1,
    }


def test_a_job_of_somebody_else_has_left_nothing(rest: None, service: Service, connect: Connect) -> None:
    job = service.create(
        "projects/my-project/locations/europe-west4", {"displayName": "x", "jobSpec": {"workerPoolSpecs": [{}]}}
    )
    assert list(connect().artefacts(job["name"])) == []


def artefact(bucket: Any, name: str, path: str, content: bytes) -> Artefact:
    blob = bucket.blob(name)
    blob.upload_from_string(content)
    return Artefact("model", path, len(content), json.dumps([BUCKET, name, blob.generation]))


def test_a_file_is_fetched(bucket: Any, connect: Connect, tmp_path: Path) -> None:
    content = bytes(range(256)) * 20_000
    one = artefact(bucket, "runs/r/model/deep/er/model.pt", "deep/er/model.pt", content)
    (tmp_path / "here").mkdir()
    shown: list[tuple[int, int]] = []

    connect().fetch(one, tmp_path / "here", lambda *both: shown.append(both))

    assert (tmp_path / "here/deep/er/model.pt").read_bytes() == content
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["model.pt"]
    assert shown[-1] == (len(content), len(content))


@pytest.mark.parametrize("path", ["../evil", "/tmp/evil", "a/../../evil", "", "a\0b"])
def test_nothing_is_written_outside(path: str, bucket: Any, connect: Connect, tmp_path: Path) -> None:
    one = artefact(bucket, "runs/r/model/x", path, b"x")
    (tmp_path / "here").mkdir()
    with pytest.raises(SpecError, match="which is no path below"):
        connect().fetch(one, tmp_path / "here")
    assert [path.name for path in tmp_path.rglob("*")] == ["here"]


def test_a_file_that_has_changed_since(bucket: Any, connect: Connect, tmp_path: Path) -> None:
    one = artefact(bucket, "runs/r/metrics/0.jsonl", "0.jsonl", b"one line, and more of it")
    bucket.blob("runs/r/metrics/0.jsonl").upload_from_string(b"another")
    connect().fetch(one, tmp_path)
    assert (tmp_path / "0.jsonl").read_bytes() == b"another"


def test_a_file_that_is_gone(bucket: Any, connect: Connect, tmp_path: Path) -> None:
    one = artefact(bucket, "runs/r/model/x", "x", b"x")
    bucket.blob("runs/r/model/x").delete()
    with pytest.raises(RefusedError, match=r"gs://my-vertex-bucket/runs/r/model/x is not there any more"):
        connect().fetch(one, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written(bucket: Any, connect: Connect, tmp_path: Path) -> None:
    one = artefact(bucket, "runs/r/model/x", "x/y", b"x")
    (tmp_path / "x").write_text("a file")
    with pytest.raises(MissingError, match="cannot write"):
        connect().fetch(one, tmp_path / "x")
    with pytest.raises(SpecError, match="'x/y', which cannot lie below"):
        connect().fetch(one, tmp_path)


class Flaky(BaseHTTPRequestHandler):
    """One object. The connection ends after the first half of it, once."""

    content = b"0123456789" * 100_000
    crc32c = base64.b64encode(google_crc32c.Checksum(content).digest()).decode()
    ranges: list[str]

    def do_GET(self) -> None:
        wanted = self.headers.get("Range") or ""
        self.ranges.append(wanted)
        start = int(wanted.removeprefix("bytes=").rstrip("-") or 0)
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(self.content) - start))
        self.send_header("X-Goog-Generation", "7")
        self.send_header("X-Goog-Stored-Content-Length", str(len(self.content)))
        self.send_header("X-Goog-Stored-Content-Encoding", "identity")
        self.send_header("X-Goog-Hash", f"crc32c={self.crc32c}")
        self.end_headers()
        half = len(self.ranges) == 1
        self.wfile.write(self.content[start : len(self.content) // 2 if half else None])

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def flaky(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Iterator[Any]:
    handler = type("Handler", (Flaky,), {"ranges": [], **changes})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server.server_address[1]}")
    try:
        yield handler
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_after_a_cut_only_the_rest_is_asked_for(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with flaky(monkeypatch) as server:
        connect().fetch(Artefact("model", "x", 10**6, json.dumps(["b", "x", 7])), tmp_path)
        assert server.ranges == ["", "bytes=500000-"]
    assert (tmp_path / "x").read_bytes() == Flaky.content


def test_all_goes_are_compared_together(connect: Connect, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def changed(handler: Flaky) -> None:
        if handler.ranges:
            handler.content = handler.content[::-1]
        Flaky.do_GET(handler)

    with flaky(monkeypatch, do_GET=changed), pytest.raises(UnreachableError, match="its checksum differs"):
        connect().fetch(Artefact("model", "x", 10**6, json.dumps(["b", "x", 7])), tmp_path)


def test_what_arrives_is_not_what_is_kept(connect: Connect, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with flaky(monkeypatch, crc32c="AAAAAA=="), pytest.raises(UnreachableError, match="its checksum differs"):
        connect().fetch(Artefact("model", "x", 10**6, json.dumps(["b", "x", 7])), tmp_path)
    assert not list(tmp_path.iterdir())
