"""What a job has left, out of moto's S3 into a folder: archives unpacked, nothing outside, nothing half."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cloudtrain.errors import RefusedError, SpecError, UnreachableError
from cloudtrain.providers.base import Request
from cloudtrain.providers.port import Artefact, Client
from tests.clients.sagemaker.aws import Aws, Trouble
from tests.clients.sagemaker.conftest import BUCKET
from tests.providers.sagemaker.jobs import CPU, request_of

Member = tuple[str, "bytes | str | int"]
"""A name, and a file's content, ``->`` and where a link leads, or the type of something else."""


@pytest.fixture
def job(boto: dict[str, Any], client: Client) -> Request:
    request = request_of(
        CPU, outputs={"Plots": {"local": "plots"}, "elsewhere": {"sagemaker": f"s3://{BUCKET}/shared/out"}}
    )
    client.create(request)
    return request


@pytest.fixture
def put(boto: dict[str, Any], job: Request) -> Callable[[str, bytes], None]:
    """Puts an object at a URI, or below the job's own folder of results."""
    own = f"{job.native['OutputDataConfig']['S3OutputPath']}/{job.name}/output/"

    def put(where: str, content: bytes) -> None:
        uri = where if where.startswith("s3://") else own + where
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        boto["s3"].put_object(Bucket=bucket, Key=key, Body=content)

    return put


def archive(*members: Member) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name, what in members:
            info = tarfile.TarInfo(name)
            if isinstance(what, bytes):
                info.size = len(what)
                info.mode = 0o755 if name.endswith(".sh") else 0o644
                tar.addfile(info, io.BytesIO(what))
                continue
            info.type = tarfile.SYMTYPE if isinstance(what, str) else str(what).encode()
            if isinstance(what, str):
                info.linkname = what.removeprefix("->")
                if what.startswith("=>"):
                    info.type, info.linkname = tarfile.LNKTYPE, what.removeprefix("=>")
            tar.addfile(info)
    return file.getvalue()


def tree(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): f"->{path.readlink()}" if path.is_symlink() else path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def fetched(client: Client, name: str, into: Path) -> dict[str, dict[str, str]]:
    """All that the job has left, by kind."""
    kinds = {}
    for artefact in client.artefacts(name):
        client.fetch(artefact, into / artefact.kind)
        kinds[artefact.kind] = tree(into / artefact.kind)
    return kinds


def test_nothing_yet(client: Client, job: Request) -> None:
    assert list(client.artefacts(job.name)) == []


def test_all_kinds(client: Client, job: Request, put: Callable[[str, bytes], None], tmp_path: Path) -> None:
    outputs = {name: uri for name, uri in job.native["Environment"].items() if name.startswith("CLOUDTRAIN_OUTPUT_")}
    put("model.tar.gz", archive(("model.pt", b"weights"), ("sub/config.json", b"{}"), ("run.sh", b"#!/bin/sh")))
    put("output.tar.gz", archive(("./note.txt", b"note"), ("metrics/rank-0.jsonl", b'{"loss": 1}'), ("metrics2", b"x")))
    checkpoints = job.native["CheckpointConfig"]["S3Uri"]
    put(f"{checkpoints}step-5/rank-0.pt", b"five")
    put(f"{checkpoints}step-5/", b"")  # what consoles make for a folder
    put(f"{outputs['CLOUDTRAIN_OUTPUT_PLOTS']}a/b.png", b"plot")
    put(f"{outputs['CLOUDTRAIN_OUTPUT_ELSEWHERE']}c.txt", b"c")
    put(f"s3://{BUCKET}/shared/outside.txt", b"of another")
    assert fetched(client, job.name, tmp_path) == {
        "model": {"model.pt": "weights", "sub/config.json": "{}", "run.sh": "#!/bin/sh"},
        "output": {"note.txt": "note", "metrics2": "x"},
        "metrics": {"rank-0.jsonl": '{"loss": 1}'},
        "checkpoints": {"step-5/rank-0.pt": "five"},
        "outputs/Plots": {"a/b.png": "plot"},
        "outputs/elsewhere": {"c.txt": "c"},
    }
    assert os.access(tmp_path / "model" / "run.sh", os.X_OK)
    assert not os.access(tmp_path / "model" / "model.pt", os.X_OK)


def test_sizes(client: Client, job: Request, put: Callable[[str, bytes], None]) -> None:
    model = archive(("model.pt", b"weights"))
    put("model.tar.gz", model)
    put("output.tar.gz", model)
    put(f"{job.native['CheckpointConfig']['S3Uri']}a", b"12345")
    sizes = {artefact.kind: artefact.size for artefact in client.artefacts(job.name)}
    assert sizes == {"model": len(model), "output": len(model), "metrics": -1, "checkpoints": 5}


def test_files_that_are_no_archive(
    aws: Aws, client: Client, job: Request, put: Callable[[str, bytes], None], tmp_path: Path
) -> None:
    """CompressionType NONE, which an override may ask for."""
    put("model/model.pt", b"weights")
    put("model/sub/a", b"a")
    put("output/note.txt", b"note")
    put("output/metrics/rank-0.jsonl", b"{}")
    own = f"{job.native['OutputDataConfig']['S3OutputPath']}/{job.name}/output/"
    aws.jobs.set(job.name, "Completed", "Completed", ModelArtifacts={"S3ModelArtifacts": f"{own}model/"})
    assert fetched(client, job.name, tmp_path) == {
        "model": {"model.pt": "weights", "sub/a": "a"},
        "output": {"note.txt": "note"},
        "metrics": {"rank-0.jsonl": "{}"},
    }


@pytest.mark.parametrize("uri", ["s3://my-sagemaker-bucket/else/m.tar.gz", "s3://my-sagemaker-bucket/else/"])
def test_a_model_where_the_service_says_that_it_is(
    aws: Aws, client: Client, job: Request, put: Callable[[str, bytes], None], tmp_path: Path, uri: str
) -> None:
    put(uri if uri.endswith("gz") else f"{uri}model.pt", archive(("model.pt", b"w")) if uri.endswith("gz") else b"w")
    aws.jobs.set(job.name, "Completed", "Completed", ModelArtifacts={"S3ModelArtifacts": uri})
    assert fetched(client, job.name, tmp_path) == {"model": {"model.pt": "w"}}


def test_large_ones_tell_how_far_they_are(
    client: Client, job: Request, put: Callable[[str, bytes], None], tmp_path: Path
) -> None:
    content = os.urandom(20 << 20)
    put(f"{job.native['CheckpointConfig']['S3Uri']}big", content)
    told: list[tuple[int, int]] = []
    (artefact,) = client.artefacts(job.name)
    client.fetch(artefact, tmp_path, lambda *now: told.append(now))
    assert (tmp_path / "big").read_bytes() == content
    assert told[-1] == (len(content), len(content))
    assert [path.name for path in tmp_path.iterdir()] == ["big"]


def test_an_earlier_file_is_replaced_as_a_whole(
    aws: Aws, client: Client, job: Request, put: Callable[[str, bytes], None], tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("old")
    put(f"{job.native['CheckpointConfig']['S3Uri']}a", b"new")
    (artefact,) = client.artefacts(job.name)
    aws.troubles = [Trouble("GetObject", 1000, "InternalError", 500)]
    with pytest.raises(UnreachableError, match="download s3://"):
        client.fetch(artefact, tmp_path)
    assert tree(tmp_path) == {"a": "old"}
    aws.troubles = [Trouble("GetObject", done=True), Trouble("GetObject", code="SlowDown", status=503)]
    client.fetch(artefact, tmp_path)
    assert tree(tmp_path) == {"a": "new"}


def test_what_is_gone_meanwhile(
    client: Client, boto: dict[str, Any], job: Request, put: Callable[[str, bytes], None], tmp_path: Path
) -> None:
    uri = f"{job.native['CheckpointConfig']['S3Uri']}a"
    put(uri, b"a")
    (artefact,) = client.artefacts(job.name)
    boto["s3"].delete_object(Bucket=BUCKET, Key=uri.removeprefix(f"s3://{BUCKET}/"))
    with pytest.raises(RefusedError, match="/a"):
        client.fetch(artefact, tmp_path)
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("key", ["../out", "a/../../out", "/etc/out", "a\0b"])
def test_names_that_lead_out(client: Client, job: Request, tmp_path: Path, key: str) -> None:
    artefact = Artefact("checkpoints", key, 1, f"file s3://{BUCKET}/x")
    inside = tmp_path / "inside"
    with pytest.raises(SpecError, match="no path below"):
        client.fetch(artefact, inside)
    assert tree(tmp_path) == {}


def test_a_name_that_is_a_file_and_a_folder(
    client: Client, job: Request, put: Callable[[str, bytes], None], tmp_path: Path
) -> None:
    checkpoints = job.native["CheckpointConfig"]["S3Uri"]
    put(f"{checkpoints}a", b"a")
    put(f"{checkpoints}a/b", b"b")
    first, second = client.artefacts(job.name)
    client.fetch(first, tmp_path)
    with pytest.raises(SpecError, match="'a/b', which cannot lie below"):
        client.fetch(second, tmp_path)


class TestArchives:
    @pytest.fixture
    def unpack(
        self, client: Client, job: Request, put: Callable[[str, bytes], None], tmp_path: Path
    ) -> Callable[..., dict[str, str]]:
        """Puts an archive as the job's model and fetches it into ``inside``."""

        def unpack(*members: Member, content: bytes | None = None) -> dict[str, str]:
            put("model.tar.gz", archive(*members) if content is None else content)
            (artefact,) = (artefact for artefact in client.artefacts(job.name) if artefact.kind == "model")
            client.fetch(artefact, tmp_path / "inside")
            return tree(tmp_path / "inside")

        return unpack

    @pytest.mark.parametrize(
        "members",
        [
            [("../out", b"x")],
            [("/out", b"x")],
            [("a/../../out", b"x")],
            [("a", "->.."), ("a/out", b"x")],
            [("a", "->/tmp")],
            [("a", "->../../out")],
            [("a", "=>../../etc/passwd")],
            [("d/a", "->."), ("b", "->d/a/../../..")],
            [("b", "->d/a/../../.."), ("d/a", "->."), ("b/out", b"x")],
            [("a", 3)],  # a character device
            [("a", 6)],  # a pipe
            [("good/below", b"a file is there")],
            [("good", 5)],  # a folder
            [("good", "->later/folder")],
            [("x" * 300, b"too long")],
        ],
    )
    def test_nothing_outside(
        self, unpack: Callable[..., dict[str, str]], tmp_path: Path, members: list[Member]
    ) -> None:
        with pytest.raises(SpecError, match=r"model\.tar\.gz holds what does not belong"):
            unpack(("good", b"good"), *members, ("later", b"later"))
        found = tree(tmp_path)
        assert found.pop("inside/good") == "good"
        assert found.pop("inside/later") == "later"
        for path in (tmp_path / "inside").rglob("*"):
            assert path.resolve().is_relative_to((tmp_path / "inside").resolve())
            assert path.is_dir() or path.is_file()
        assert not (tmp_path / "out").exists()

    def test_links(self, unpack: Callable[..., dict[str, str]], tmp_path: Path) -> None:
        """To files they become copies, to folders they stay; what is dangling stays so."""
        members: list[Member] = [
            ("latest", "->step-5"),
            ("alias.pt", "->step-5/model.pt"),
            ("hard.pt", "=>step-5/model.pt"),
            ("dangling", "->step-6"),
            ("up/down", "->../step-5"),
        ]
        found = unpack(("step-5/model.pt", b"five"), *members)
        assert found == {
            "alias.pt": "five",
            "dangling": "->step-6",
            "hard.pt": "five",
            "latest": "->step-5",
            "step-5/model.pt": "five",
            "up/down": "->../step-5",
        }
        assert (tmp_path / "inside/up/down/model.pt").read_text() == "five"
        assert unpack(("step-5/model.pt", b"six"), *members)["alias.pt"] == "six"  # again, over what is there

    def test_a_later_archive_cannot_write_through_a_link(
        self, unpack: Callable[..., dict[str, str]], tmp_path: Path
    ) -> None:
        unpack(("a", "->b"))
        assert unpack(("a", b"a"))["a"] == "a"
        assert not (tmp_path / "inside/b").exists()

    @pytest.mark.parametrize("content", [b"", b"no archive", archive(("a", os.urandom(9999)))[:-500]])
    def test_what_is_no_archive(self, unpack: Callable[..., dict[str, str]], tmp_path: Path, content: bytes) -> None:
        with pytest.raises(UnreachableError, match=r"model\.tar\.gz is no whole archive"):
            unpack(content=content)
        assert tree(tmp_path) == {}

    def test_empty_folders(self, unpack: Callable[..., dict[str, str]], tmp_path: Path) -> None:
        unpack(("a/b", 5))
        assert (tmp_path / "inside/a/b").is_dir()
