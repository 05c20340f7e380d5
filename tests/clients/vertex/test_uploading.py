"""What travels with a job, in Cloud Storage: sent once, whole, by whoever comes first."""

from __future__ import annotations

import io
import random
import tarfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cloudtrain.bundle import Bundle, scan
from cloudtrain.errors import CloudtrainError, MissingError, RefusedError
from cloudtrain.providers import shipping
from cloudtrain.providers.base import Request, Shipped
from cloudtrain.providers.port import Client
from tests.clients.azureml.cutting import wire_to
from tests.clients.vertex.conftest import BUCKET
from tests.providers.vertex.jobs import CPU, requested

Connect = Callable[[], Client]
MIB = 1 << 20
LAST = "launch.py"


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    folder = tmp_path / "project"
    (folder / "lib").mkdir(parents=True)
    (folder / "train.py").write_text("print('training')\n")
    (folder / "lib" / "ünï.py").write_text("")
    return scan(folder)


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bundle:
    """An archive of twelve parts, which are made small for the test."""
    monkeypatch.setattr("cloudtrain.providers.vertex.parts.PART_BYTES", MIB // 2)
    folder = tmp_path / "large"
    folder.mkdir()
    (folder / "weights.bin").write_bytes(random.Random(0).randbytes(6 * MIB - 99_999))
    return scan(folder)


def code_folder(request: Request) -> str:
    return next(ship.to for ship in request.ships if ship.kind == "code").removeprefix(f"gs://{BUCKET}/")


def spec_name(request: Request) -> str:
    return next(ship.to for ship in request.ships if ship.kind == "spec").removeprefix(f"gs://{BUCKET}/") + "spec.json"


def objects(bucket: Any, folder: str) -> dict[str, Any]:
    return {blob.name.removeprefix(folder): blob for blob in bucket.list_blobs(prefix=folder)}


def test_all_that_a_node_needs_is_put_there(bucket: Any, connect: Connect, bundle: Bundle, tmp_path: Path) -> None:
    request = requested(CPU)
    shown: list[tuple[int, int]] = []

    uploaded = connect().upload(request, bundle, lambda done, total: shown.append((done, total)))

    shipping.write_code(bundle, tmp_path / "code")
    there = objects(bucket, code_folder(request))
    assert sorted(there) == sorted(shipping.code_names())
    for name, blob in there.items():
        assert blob.download_as_bytes() == (tmp_path / "code" / name).read_bytes()
    with tarfile.open(fileobj=io.BytesIO(there["code.tar.gz"].download_as_bytes())) as archive:
        assert sorted(archive.getnames()) == ["lib/ünï.py", "train.py"]
    spec = bucket.blob(spec_name(request)).download_as_bytes()
    assert spec.startswith(b'{"args"')
    assert uploaded == (sum(blob.size for blob in there.values()) + len(spec), 0)
    assert max(there.values(), key=lambda blob: blob.time_created).name.endswith(LAST)
    assert shown == sorted(shown)
    assert shown[0] == (0, uploaded.sent)
    assert shown[-1] == (uploaded.sent, uploaded.sent)


def test_what_is_there_is_not_sent_again(
    object_store: str, bucket: Any, connect: Connect, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = requested(CPU)
    first = connect().upload(request, bundle)
    with wire_to(object_store) as wire:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", wire.url)
        shown: list[tuple[int, int]] = []
        assert connect().upload(request, bundle, lambda *both: shown.append(both)) == (0, first.sent)
        assert connect().upload(requested(CPU), None) == (0, first.sent)
        assert wire.sent < 8_000  # four requests without a body
    assert shown == [(first.sent, first.sent)]


def test_only_what_is_missing_is_sent(bucket: Any, connect: Connect, bundle: Bundle) -> None:
    request = requested(CPU)
    first = connect().upload(request, bundle)
    there = objects(bucket, code_folder(request))
    for name in (LAST, "train_ddp.py"):  # as if an upload had been cut off before its end
        there[name].delete()

    again = connect().upload(request, bundle)

    assert again.sent == there[LAST].size + there["train_ddp.py"].size
    assert again.sent + again.present == first.sent
    assert sorted(objects(bucket, code_folder(request))) == sorted(shipping.code_names())


def test_channels_that_lie_here_are_sent(bucket: Any, connect: Connect, bundle: Bundle, tmp_path: Path) -> None:
    folder = tmp_path / "images"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "launch.py").write_bytes(b"data that is called so")
    (folder / "b.bin").write_bytes(b"0123456789")
    request = requested(CPU)
    to = f"gs://{BUCKET}/cloudtrain/data/0123/"
    request = request._replace(ships=(*request.ships, Shipped("data", to, str(folder))))

    first = connect().upload(request, bundle)

    there = objects(bucket, "cloudtrain/data/0123/")
    assert {name: blob.download_as_bytes() for name, blob in there.items()} == {
        "a/launch.py": b"data that is called so",
        "b.bin": b"0123456789",
    }
    there["b.bin"].delete()
    assert connect().upload(request, bundle) == (10, first.sent - 10)
    assert connect().upload(request, None) == (0, first.sent)


def test_a_spec_that_differs_is_replaced(bucket: Any, connect: Connect, bundle: Bundle) -> None:
    request = requested(CPU)
    connect().upload(request, bundle)
    bucket.blob(spec_name(request)).upload_from_string(b"")

    sent = connect().upload(request._replace(spec={**request.spec, "grace": 7.0}), bundle).sent

    found = bucket.blob(spec_name(request)).download_as_bytes()
    assert len(found) == sent and b'"grace":7.0' in found


def test_a_further_attempt_needs_the_code_to_be_there(bucket: Any, connect: Connect) -> None:
    with pytest.raises(MissingError, match="the code of the earlier attempt is not at gs://my-vertex-bucket/"):
        connect().upload(requested(CPU), None)


def test_there_is_no_such_bucket(bucket: Any, connect: Connect, bundle: Bundle) -> None:
    with pytest.raises(RefusedError, match="there is no bucket gs://nobodys") as error:
        connect().upload(requested(CPU, settings={"bucket": "nobodys"}), bundle)
    assert "gcloud storage buckets create gs://nobodys" in str(error.value)


def test_without_credentials(connect: Connect, bundle: Bundle) -> None:
    with pytest.raises(MissingError, match="no usable credentials"):
        connect().upload(requested(CPU), bundle)


def test_large_archives_go_in_parts(bucket: Any, connect: Connect, large: Bundle, tmp_path: Path) -> None:
    request = requested(CPU)

    uploaded = connect().upload(request, large)

    there = objects(bucket, code_folder(request))
    assert sorted(there) == sorted(shipping.code_names())
    shipping.write_code(large, tmp_path / "code")
    assert there["code.tar.gz"].download_as_bytes() == (tmp_path / "code" / "code.tar.gz").read_bytes()
    assert uploaded.sent == sum(blob.size for blob in there.values()) + len(
        bucket.blob(spec_name(request)).download_as_bytes()
    )


class Cut(Exception):
    pass


def cut_off(client: Client, request: Request, bundle: Bundle, after: int = MIB) -> None:
    def cut(done: int, total: int) -> None:
        if done > after:
            raise Cut

    with pytest.raises(Cut):
        client.upload(request, bundle, cut)


def parts(bucket: Any) -> dict[str, Any]:
    return objects(bucket, "cloudtrain/parts/")


def of_other_code(digest: str) -> Request:
    request = requested(CPU)
    code = request.ships[0]
    assert code.kind == "code"
    return request._replace(ships=(code._replace(to=f"gs://{BUCKET}/cloudtrain/code/{digest}/"), *request.ships[1:]))


def test_an_upload_goes_on_where_it_was_cut_off(bucket: Any, connect: Connect, large: Bundle) -> None:
    request = requested(CPU)
    cut_off(connect(), request, large)
    left = objects(bucket, code_folder(request))
    assert set(left) <= set(shipping.code_names()) - {LAST, "code.tar.gz"}  # no node sees the parts
    sent = sum(blob.size for blob in parts(bucket).values())
    assert sent >= MIB // 2
    kept = sum(blob.size for blob in left.values()) + sent + bucket.get_blob(spec_name(request)).size

    again = connect().upload(request, large)

    assert again.present == kept
    assert again.sent <= 6 * MIB - sent + 300_000
    assert sorted(objects(bucket, code_folder(request))) == sorted(shipping.code_names())
    assert not parts(bucket)


def test_parts_that_nobody_can_use_are_removed_by_the_next_upload(bucket: Any, connect: Connect, large: Bundle) -> None:
    """Of an archive with other bytes, and of one that was put together before its upload was cut off."""
    request = requested(CPU)
    place = code_folder(request).replace("cloudtrain/", "cloudtrain/parts/", 1)
    connect().upload(request, large)
    bucket.blob(f"{code_folder(request)}{LAST}").delete()
    names = [f"{place}code.tar.gz.{mark}.{number:02}" for mark in ("0" * 16, "f" * 16) for number in range(3)]
    for name in names:
        bucket.blob(name).upload_from_string(b"part")
    other = f"cloudtrain/parts/code/{'0' * 64}/code.tar.gz.{'0' * 16}.00"
    bucket.blob(other).upload_from_string(b"another upload is sending this just now")

    connect().upload(request, large)

    assert [f"cloudtrain/parts/{name}" for name in parts(bucket)] == [other]


def test_parts_of_what_is_never_sent_again_are_removed_a_day_later(
    bucket: Any, connect: Connect, large: Bundle, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off(connect(), requested(CPU), large)
    kept = sorted(parts(bucket))
    assert kept
    connect().upload(of_other_code("1" * 64), bundle)
    assert sorted(parts(bucket)) == kept
    now = time.time()
    monkeypatch.setattr("cloudtrain.providers.vertex.parts.time", lambda: now + 2 * 86_400)

    connect().upload(of_other_code("2" * 64), bundle)

    assert not parts(bucket)
    connect().upload(requested(CPU), large)
    assert sorted(objects(bucket, code_folder(requested(CPU)))) == sorted(shipping.code_names())


def test_a_connection_is_cut_in_the_middle(
    object_store: str, bucket: Any, connect: Connect, large: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = requested(CPU)
    with wire_to(object_store) as wire:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", wire.url)
        wire.cut_after = 2 * MIB
        connect().upload(request, large)
        assert wire.cuts == 1
    assert sorted(objects(bucket, code_folder(request))) == sorted(shipping.code_names())


@pytest.mark.parametrize("size", ["bundle", "large"])
def test_two_at_once_do_not_collide(size: str, bucket: Any, connect: Connect, request: pytest.FixtureRequest) -> None:
    bundle: Bundle = request.getfixturevalue(size)
    asked = requested(CPU)
    errors: list[CloudtrainError] = []

    def upload() -> None:
        try:
            connect().upload(asked, bundle)
        except CloudtrainError as error:
            errors.append(error)

    threads = [threading.Thread(target=upload) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not errors
    there = objects(bucket, code_folder(asked))
    assert set(there) >= set(shipping.code_names())
    with tarfile.open(fileobj=io.BytesIO(there["code.tar.gz"].download_as_bytes())) as archive:
        assert sorted(archive.getnames()) == sorted(bundle.paths)
