"""Without credentials, packages or settings, with closed ports, and with answers that make no sense."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from cloudtrain.doctor.asking import answered
from cloudtrain.doctor.packages import installed
from cloudtrain.doctor.settings import found
from cloudtrain.emulator import certificates
from cloudtrain.providers.questions import Check, Question, Unknown
from tests.doctor.looking import SETTINGS, alone, doctor

CLOUDS = ("sagemaker", "vertex", "azureml")
CLOSED = "127.0.0.1:9"


def _endpoints(plain: str, tls: str) -> dict[str, str]:
    """Variables that lead all clients to one place."""
    return {
        "AWS_ENDPOINT_URL": plain, "AWS_ACCESS_KEY_ID": "AKIDOFTHETEST1234", "AWS_SECRET_ACCESS_KEY": "never-shown",
        "STORAGE_EMULATOR_HOST": plain, "CLOUDTRAIN_ENDPOINT_VERTEX": plain, "CLOUDTRAIN_ENDPOINT_LOGGING": plain,
        "CLOUDTRAIN_ENDPOINT_AZUREML": tls, "CLOUDTRAIN_ENDPOINT_BLOB": f"{plain}/{{}}",
    }  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "cloudtrain.toml").write_text(SETTINGS)
    return folder


def test_a_machine_on_which_no_cloud_is_set_up(tmp_path: Path) -> None:
    said = doctor(tmp_path, env=alone(tmp_path))
    assert said.code == 0
    for cloud in CLOUDS:
        (only,) = said.of(cloud).values()
        assert (only["verdict"], "not set up" in only["found"]) == ("not checked", True)
    assert {"Python", "torch", "namespaces", "ledger", "extra local", "extra emulator"} < said.of("machine").keys()


def test_settings_without_credentials(project: Path) -> None:
    said = doctor(project, env=alone(project.parent))
    assert said.code == 3
    assert {cloud: said.of(cloud)["credentials"]["verdict"] for cloud in CLOUDS} == dict.fromkeys(CLOUDS, "problem")
    assert {cloud: said.of(cloud)["service"]["verdict"] for cloud in CLOUDS} == dict.fromkeys(CLOUDS, "not checked")
    assert "aws configure" in said.of("sagemaker")["credentials"]["next"]
    assert "gcloud auth application-default login" in said.of("vertex")["credentials"]["next"]
    assert "az login" in said.of("azureml")["credentials"]["next"]


def test_where_settings_are_found(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDTRAIN_SAGEMAKER_PREFIX", "team")
    inside = project / "inside"
    inside.mkdir()
    known = found("sagemaker", inside, {"region": "us-east-2"})
    assert {check.name.removeprefix("setting "): check.found for check in known.checks} == {
        "region": "us-east-2, from --set region",
        "role": f"arn:aws:iam::111122223333:role/Train, from {project}/cloudtrain.toml:6",
        "bucket": f"some-bucket, from {project}/cloudtrain.toml:5",
        "prefix": "team, from CLOUDTRAIN_SAGEMAKER_PREFIX",
    }


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('sagemaker.region = "us-east-1"', 1),
        ('\nsagemaker = {region = "us-east-1"}', 2),
        ('[vertex]\nregion = "us-east1"\n[ "sagemaker" ]\n# region\n"region"="us-east-1"', 5),
        ('[sagemaker]\nbucket = "b"\nregion = ""', None),
    ],
)
def test_the_line_of_a_setting(tmp_path: Path, content: str, line: int | None) -> None:
    (tmp_path / "cloudtrain.toml").write_text(content)
    region = next(check for check in found("sagemaker", tmp_path, {}).checks if check.name == "setting region")
    where = f"us-east-1, from {tmp_path}/cloudtrain.toml:{line}" if line else "not set: AWS region"
    assert region.found == where


@pytest.mark.parametrize(
    "content", ["[sagemaker]\nregon = 'x'", "[sage", "\0", '[sagemaker]\nbucket = "s3://b"', "sagemaker = 3"]
)
def test_settings_that_are_wrong(tmp_path: Path, content: str) -> None:
    (tmp_path / "cloudtrain.toml").write_text(content)
    (only,) = found("sagemaker", tmp_path, {}).checks
    assert (only.name, only.verdict, "cloudtrain.toml" in only.found) == ("settings", "problem", True)


def test_settings_that_nobody_gave(tmp_path: Path) -> None:
    known = found("vertex", tmp_path, {})
    missing = {check.name: check.next for check in known.checks if check.verdict == "problem"}
    assert missing.keys() == {"setting project", "setting region", "setting bucket"}
    assert "CLOUDTRAIN_VERTEX_BUCKET" in missing["setting bucket"]
    assert not known.is_any


def test_closed_ports(project: Path) -> None:
    env = alone(project.parent, **_endpoints(f"http://{CLOSED}", f"https://{CLOSED}"))
    said = doctor(project, env=env)
    assert {name for name, verdict in said.verdicts("sagemaker").items() if verdict == "problem"} == {
        "identity", "bucket", "role", "SageMaker",
    }  # fmt: skip
    assert {name for name, verdict in said.verdicts("vertex").items() if verdict == "problem"} == {
        "bucket", "Vertex AI", "Cloud Logging",
    }  # fmt: skip
    assert {name for name, verdict in said.verdicts("azureml").items() if verdict == "problem"} == {
        "workspace", "jobs", "datastore", "files",
    }  # fmt: skip
    assert "never-shown" not in said.out
    assert "AKIDOFTHETEST1234" not in said.out


class _Quiet(WSGIRequestHandler):
    def log(self, *_: object) -> None:
        """Nothing."""


ANSWERS = {
    "a page": (200, "text/html", b"<html>\x1b[31mplease log in\x07</html>"),
    "a list": (200, "application/json", b'[1, "\\u001b[31m", null]'),
    "odd members": (
        200, "application/json",
        b'{"TrainingJobSummaries": 7, "id": [], "location": {"a": 1}, "properties": 3, "value": 5, "entries": "x",'
        b' "customJobs": {}, "permissions": 9}',
    ),
    "bytes": (200, "application/xml", bytes(range(256))),
    "a refusal that is none": (403, "application/json", b'{"error": {"message": "no\\u001b[2J\\nway", "code": []}}'),
}  # fmt: skip


@pytest.fixture(params=ANSWERS)
def hostile(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Variables that lead all clients to servers that answer everything alike."""
    status, kind, body = ANSWERS[request.param]

    @Request.application
    def answer(_: Request) -> Response:
        return Response(body, status, {"x-amz-bucket-region": "eu-west-1"}, content_type=kind)

    context, trusting = certificates.issue(tmp_path / "trusted.pem")
    plain = make_server("127.0.0.1", 0, answer, threaded=True, request_handler=_Quiet)
    tls = make_server("127.0.0.1", 0, answer, threaded=True, request_handler=_Quiet, ssl_context=context)
    threads = [threading.Thread(target=server.serve_forever) for server in (plain, tls)]
    for thread in threads:
        thread.start()
    urls = (f"http://127.0.0.1:{plain.server_port}", f"https://127.0.0.1:{tls.server_port}")
    yield {**_endpoints(*urls), **trusting}
    for server, thread in zip((plain, tls), threads, strict=True):
        server.shutdown()
        thread.join()
        server.server_close()


def test_answers_that_make_no_sense(project: Path, hostile: dict[str, str]) -> None:
    said = doctor(project, env=alone(project.parent, **hostile))
    assert said.code == 3
    for cloud, name in (("sagemaker", "SageMaker"), ("vertex", "Vertex AI"), ("azureml", "workspace")):
        assert said.verdicts(cloud)[name] == "problem"
    assert not re.search(r"Traceback|never-shown", said.out)


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("raise TypeError('of another version')", "of another version"),
        ("raise ImportError('half of it')", "half of it"),
    ],
)
def test_a_package_that_is_broken(project: Path, program: str, why: str) -> None:
    package = project.parent / "broken" / "boto3"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(program)
    env = alone(project.parent, PYTHONPATH=str(package.parent), AWS_PROFILE="mine")
    said = doctor(project, "--provider", "sagemaker", env=env).of("sagemaker")
    assert said["packages"]["verdict"] == "problem"
    assert why in said["packages"]["found"]
    assert "pip install 'cloudtrain[sagemaker]'" in said["packages"]["next"]
    assert said["credentials"]["found"] == "there are AWS_PROFILE"


def test_a_ledger_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("in the way")
    said = doctor(tmp_path, env=alone(tmp_path))
    assert (said.code, said.of("machine")["ledger"]["verdict"]) == (3, "problem")
    assert "CLOUDTRAIN_HOME" in said.of("machine")["ledger"]["next"]


def test_questions_that_never_end_or_raise() -> None:
    never = threading.Event()

    def endless() -> Check:
        never.wait()
        return Check("endless", "ok", "")

    def raising() -> Check:
        raise ZeroDivisionError("three\nlines\x1b[2J")

    def unknown() -> Check:
        raise Unknown("nobody says")

    questions = [
        Question("endless", endless),
        Question("raising", raising),
        Question("unknown", unknown),
        Question("unable", endless, ("bucket",)),
        Question("well", lambda: Check("well", "ok", "there")),
    ]
    lines = [check.tidy() for check in answered(questions, ["bucket"], seconds=0.2)]
    never.set()
    assert [(check.name, check.verdict) for check in lines] == [
        ("endless", "problem"), ("raising", "problem"), ("unknown", "not checked"), ("unable", "not checked"),
        ("well", "ok"),
    ]  # fmt: skip
    assert lines[0].found == "no answer within 0.2 s"
    assert lines[1].found == "the answer makes no sense: ZeroDivisionError: three lines\\x1b[2J"
    assert lines[3].found == "not set: bucket"


def test_an_extra_of_which_something_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    needs = ["click (>=99) ; extra == 'x'", "no-such-package>=1; extra == 'x'", 'pytest<1; extra == "x"']
    monkeypatch.setattr(metadata, "requires", lambda _: needs)
    check = installed("x")
    assert (check.verdict, check.next) == ("problem", "pip install 'cloudtrain[x]'")
    assert re.fullmatch(
        r"click [\d.]+ is older than 99, no-such-package is missing, pytest [\d.]+ is not older than 1", check.found
    )
