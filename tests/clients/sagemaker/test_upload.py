"""The code by its digest and the spec, into moto's S3: once, whole, by several at once, and on after a cut."""

from __future__ import annotations

import json
import os
import tarfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cloudtrain.bundle import Bundle, scan
from cloudtrain.errors import MissingError, RefusedError, UnreachableError
from cloudtrain.providers import registry
from cloudtrain.providers.base import Request
from cloudtrain.providers.port import Client, Uploaded
from tests.clients.sagemaker.aws import Aws, Trouble
from tests.clients.sagemaker.conftest import BUCKET, REGION
from tests.providers.sagemaker.jobs import CPU, request_of

ENTRYPOINTS = Path(__file__).parents[3] / "entrypoints"
MIB = 1 << 20
SENDS = ("PutObject", "UploadPart", "CreateMultipartUpload", "CompleteMultipartUpload")


@pytest.fixture
def request_() -> Request:
    return request_of(CPU)


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text("print('hello')\n")
    return scan(project)


@pytest.fixture
def large(tmp_path: Path) -> Bundle:
    """Of 10 MiB that do not shrink: two parts."""
    project = tmp_path / "large"
    project.mkdir()
    (project / "weights.bin").write_bytes(os.urandom(10 * MIB))
    return scan(project)


def place_of(request: Request, kind: str) -> str:
    """Key of the folder."""
    (uri,) = (ships.to for ships in request.ships if ships.kind == kind)
    assert uri.startswith(f"s3://{BUCKET}/")
    return uri.removeprefix(f"s3://{BUCKET}/")


def keys(boto: dict[str, Any], prefix: str = "") -> dict[str, int]:
    answer = boto["s3"].list_objects_v2(Bucket=BUCKET, Prefix=prefix)
    return {found["Key"].removeprefix(prefix): found["Size"] for found in answer.get("Contents", [])}


def content(boto: dict[str, Any], key: str) -> bytes:
    body = boto["s3"].get_object(Bucket=BUCKET, Key=key)["Body"]
    return bytes(body.read())


def unpacked(boto: dict[str, Any], request: Request, folder: Path) -> bytes:
    """The large file, out of the archive that was sent."""
    archive = folder / "code.tar.gz"
    archive.write_bytes(content(boto, f"{place_of(request, 'code')}code.tar.gz"))
    with tarfile.open(archive) as tar:
        (member,) = [member for member in tar if member.name.endswith("weights.bin")]
        file = tar.extractfile(member)
        assert file
        return file.read()


def test_what_a_node_needs_is_there(
    aws: Aws, boto: dict[str, Any], client: Client, request_: Request, bundle: Bundle, tmp_path: Path
) -> None:
    done = client.upload(request_, bundle)
    code, spec = place_of(request_, "code"), place_of(request_, "spec")
    there = keys(boto)
    assert done == Uploaded(sum(there.values()), 0)
    assert json.loads(content(boto, f"{spec}spec.json")) == request_.spec
    assert content(boto, f"{code}launch.py") == (ENTRYPOINTS / "launch.py").read_bytes()
    modules = {path.relative_to(ENTRYPOINTS).as_posix() for path in ENTRYPOINTS.glob("cloudtrain_*/**/*.py")}
    expected = {"launch.py", "train_ddp.py", "code.tar.gz", *modules}
    assert keys(boto, code).keys() == expected
    archive = tmp_path / "code.tar.gz"
    archive.write_bytes(content(boto, f"{code}code.tar.gz"))
    with tarfile.open(archive) as tar:
        assert "train.py" in {Path(name).name for name in tar.getnames()}
    puts = [call for call in aws.calls if call.operation == "PutObject"]
    assert puts[-1].path.endswith("/launch.py")  # a folder that holds it is complete
    assert len({call.path for call in puts}) == len(puts)
    # What is named by its content is written once only, by whoever comes first.
    assert {call.condition for call in puts if "/code/" in call.path} == {"*"}


def test_a_second_time_nothing_is_sent(
    aws: Aws, client: Client, boto: dict[str, Any], request_: Request, bundle: Bundle
) -> None:
    first = client.upload(request_, bundle)
    aws.calls.clear()
    assert client.upload(request_, bundle) == Uploaded(0, first.sent)
    assert aws.operations() == ["ListObjectsV2", "GetObject"]
    assert sum(call.sent for call in aws.calls) == 0


def test_specs_belong_to_their_runs(client: Client, boto: dict[str, Any], request_: Request, bundle: Bundle) -> None:
    client.upload(request_, bundle)
    other = request_of(CPU, args=["--epochs", "5"])
    assert other.ships[0] == request_.ships[0]
    assert client.upload(other, bundle).sent == len(content(boto, f"{place_of(other, 'spec')}spec.json"))
    changed = request_._replace(spec={**request_.spec, "grace": 1.0})
    client.upload(changed, bundle)
    assert json.loads(content(boto, f"{place_of(request_, 'spec')}spec.json")) == changed.spec


def test_a_cut_upload_is_gone_on_with(
    aws: Aws, client: Client, boto: dict[str, Any], request_: Request, bundle: Bundle
) -> None:
    """The network is gone after some files; what had arrived is not sent again."""
    aws.after = ("PutObject", 10)
    with pytest.raises(UnreachableError, match="send s3://"):
        client.upload(request_, bundle)
    aws.after = None
    arrived = keys(boto)
    assert 0 < len(arrived) <= 10
    assert not any(key.endswith("launch.py") for key in arrived)
    aws.calls.clear()
    done = client.upload(request_, bundle)
    assert done.present == sum(arrived.values())
    assert done.sent + done.present == sum(keys(boto).values())
    assert not {call.path.removeprefix(f"/{BUCKET}/") for call in aws.calls if call.operation == "PutObject"} & set(
        arrived
    )


def test_files_that_have_gone_are_sent_again(
    client: Client, boto: dict[str, Any], request_: Request, bundle: Bundle
) -> None:
    """A rule of the bucket may have removed what is old."""
    client.upload(request_, bundle)
    before = keys(boto)
    lost = f"{place_of(request_, 'code')}cloudtrain_launch/node.py"
    boto["s3"].delete_object(Bucket=BUCKET, Key=lost)
    assert client.upload(request_, bundle).sent == before[lost]
    assert keys(boto) == before


class TestWithoutTheCode:
    """A further attempt: what the first one has sent must still be there."""

    @pytest.mark.usefixtures("boto")
    def test_there(self, client: Client, request_: Request, bundle: Bundle) -> None:
        client.upload(request_, bundle)
        assert client.upload(request_, None).sent == 0

    @pytest.mark.parametrize("lost", ["launch.py", "code.tar.gz"])
    def test_gone(self, client: Client, boto: dict[str, Any], request_: Request, bundle: Bundle, lost: str) -> None:
        client.upload(request_, bundle)
        boto["s3"].delete_object(Bucket=BUCKET, Key=f"{place_of(request_, 'code')}{lost}")
        with pytest.raises(MissingError, match="earlier attempt"):
            client.upload(request_, None)


def test_two_at_once_end_with_one_folder(
    aws: Aws, client: Client, boto: dict[str, Any], request_: Request, large: Bundle, tmp_path: Path
) -> None:
    """Objects named by their content are written by one of them alone, and each takes what the other has written."""
    clients = [registry.connect("sagemaker", {"region": REGION}) for _ in range(2)]
    with ThreadPoolExecutor(len(clients)) as pool:
        done = list(pool.map(lambda one: one.upload(request_, large), clients))
    there = keys(boto)
    assert {sum(each) for each in done} == {sum(there.values())}
    assert not boto["s3"].list_multipart_uploads(Bucket=BUCKET).get("Uploads")
    assert unpacked(boto, request_, tmp_path) == (large.folder / "weights.bin").read_bytes()
    assert client.upload(request_, large).sent == 0


class TestLarge:
    def test_in_parts_and_whole(
        self, aws: Aws, client: Client, boto: dict[str, Any], request_: Request, large: Bundle, tmp_path: Path
    ) -> None:
        told: list[tuple[int, int]] = []
        done = client.upload(request_, large, lambda *now: told.append(now))
        assert done.present == 0
        assert told == sorted(told)
        assert {total for _, total in told} == {done.sent}
        assert told[-1][0] == done.sent
        assert aws.operations("UploadPart") == ["UploadPart"] * 2
        assert unpacked(boto, request_, tmp_path) == (large.folder / "weights.bin").read_bytes()

    def test_a_cut_in_the_middle(
        self, aws: Aws, client: Client, boto: dict[str, Any], request_: Request, large: Bundle
    ) -> None:
        aws.after = ("UploadPart", 1)
        with pytest.raises(UnreachableError, match=r"code\.tar\.gz"):
            client.upload(request_, large)
        aws.after = None
        aws.calls.clear()
        done = client.upload(request_, large)
        assert aws.operations("UploadPart", "CreateMultipartUpload") == ["UploadPart"]
        assert done.present > MIB  # the last part is the smaller one
        assert not boto["s3"].list_multipart_uploads(Bucket=BUCKET).get("Uploads")

    def test_parts_of_another_file_are_not_taken(
        self, client: Client, boto: dict[str, Any], request_: Request, large: Bundle
    ) -> None:
        key = f"{place_of(request_, 'code')}code.tar.gz"
        upload = boto["s3"].create_multipart_upload(Bucket=BUCKET, Key=key)["UploadId"]
        boto["s3"].upload_part(Bucket=BUCKET, Key=key, UploadId=upload, PartNumber=1, Body=b"x" * 8 * MIB)
        assert client.upload(request_, large).present == 0
        assert content(boto, key)[:2] == b"\x1f\x8b"
        assert not boto["s3"].list_multipart_uploads(Bucket=BUCKET).get("Uploads")

    @pytest.mark.parametrize("code", ["PreconditionFailed", "InvalidPart"])
    def test_another_upload_that_cuts_in(
        self, aws: Aws, client: Client, boto: dict[str, Any], request_: Request, large: Bundle, code: str
    ) -> None:
        aws.troubles = [Trouble("CompleteMultipartUpload", code=code, status=412)]
        client.upload(request_, large)
        assert content(boto, f"{place_of(request_, 'code')}code.tar.gz")[:2] == b"\x1f\x8b"

    def test_nobody_knows_whether_it_was_put_together(
        self, aws: Aws, client: Client, boto: dict[str, Any], request_: Request, large: Bundle
    ) -> None:
        aws.troubles = [Trouble("CompleteMultipartUpload", half=True)]
        client.upload(request_, large)
        assert aws.operations("UploadPart") == ["UploadPart"] * 2
        assert content(boto, f"{place_of(request_, 'code')}code.tar.gz")[:2] == b"\x1f\x8b"

    def test_who_may_not_list_uploads_may_upload(
        self, aws: Aws, client: Client, boto: dict[str, Any], request_: Request, large: Bundle
    ) -> None:
        aws.troubles = [Trouble("ListMultipartUploads", 9, "AccessDenied", 403)]
        assert client.upload(request_, large).present == 0
        assert f"{place_of(request_, 'code')}code.tar.gz" in keys(boto)


@pytest.mark.parametrize("code", ["PreconditionFailed", "ConditionalRequestConflict"])
def test_another_upload_of_a_small_file(
    aws: Aws, client: Client, boto: dict[str, Any], request_: Request, bundle: Bundle, code: str
) -> None:
    aws.troubles = [Trouble("PutObject", code=code, status=409)]
    done = client.upload(request_, bundle)
    assert (done.present > 0) == (code == "PreconditionFailed")


def test_a_burst_of_slow_down(
    aws: Aws, client: Client, boto: dict[str, Any], request_: Request, bundle: Bundle
) -> None:
    aws.troubles = [Trouble("PutObject", 2, "SlowDown", 503, "Please reduce your request rate.")]
    assert client.upload(request_, bundle).sent == sum(keys(boto).values())


def test_a_bucket_that_is_not_there(aws: Aws, client: Client, request_: Request, bundle: Bundle) -> None:
    with pytest.raises(RefusedError, match=BUCKET) as caught:
        client.upload(request_, bundle)
    assert caught.value.cause == "data"
    assert "sagemaker.bucket" in (caught.value.hint or "")


def test_a_bucket_that_may_not_be_written(
    aws: Aws, client: Client, boto: dict[str, Any], request_: Request, bundle: Bundle
) -> None:
    aws.troubles = [Trouble("PutObject", 1000, "AccessDenied", 403)]
    with pytest.raises(RefusedError, match="AccessDenied") as caught:
        client.upload(request_, bundle)
    assert caught.value.cause == "permission"


def test_a_full_disk_here(
    client: Client, boto: dict[str, Any], request_: Request, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/dev/full")
    with pytest.raises(MissingError, match="cannot write"):
        client.upload(request_, bundle)


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    yield
    assert not list(scratch.glob("cloudtrain-*"))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("cloudtrain-upload")]
