"""What goes wrong with the account and on the way: which error, what it says, what to do next."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cloudtrain.errors import MissingError, RefusedError, UnreachableError
from cloudtrain.providers import registry
from cloudtrain.providers.port import Client
from tests.clients.sagemaker.aws import Aws, Trouble
from tests.clients.sagemaker.conftest import REGION
from tests.clients.sockets import assert_back_to, sockets
from tests.providers.sagemaker.jobs import CPU, request_of


def connect(region: str = REGION) -> Client:
    return registry.connect("sagemaker", {"region": region})


@pytest.mark.usefixtures("aws")
class TestCredentials:
    def test_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        with pytest.raises(MissingError, match="credentials") as caught:
            connect()
        assert type(caught.value) is MissingError
        assert "AWS_ACCESS_KEY_ID" in (caught.value.hint or "")

    def test_half(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        with pytest.raises(MissingError, match="AWS_SECRET_ACCESS_KEY"):
            connect()

    def test_a_profile_that_is_not_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_PROFILE", "nobody")
        with pytest.raises(MissingError, match="nobody"):
            connect()

    def test_a_file_that_cannot_be_read(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "config").write_text("[default\nregion")
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
        with pytest.raises(MissingError, match="config"):
            connect()


REFUSALS = [
    ("ExpiredTokenException", "The security token included in the request is expired", "permission", "aws sso login"),
    ("ExpiredToken", "The provided token has expired.", "permission", "aws sso login"),
    ("UnrecognizedClientException", "The security token included in the request is invalid.", "permission", "AWS_"),
    ("RequestTimeTooSkewed", "The difference is too large", "permission", "clock"),
    ("AccessDeniedException", "User: x is not authorized to perform: iam:PassRole", "permission", "right"),
    ("ResourceLimitExceeded", "The account-level service limit 'ml.p4d.24xlarge' is 0", "quota", "Service Quotas"),
    ("CapacityError", "Unable to provision requested ML compute capacity", "capacity", "later"),
    ("ValidationException", "The role is invalid: cannot assume role", "permission", "sagemaker.role"),
    ("ValidationException", "Invalid training image. Provide an ECR path", "image", "environment.image"),
    (
        "ValidationException",
        'No S3 objects found under S3 URL "s3://b/x/" given in input data source. Please ensure that the bucket exists '
        'in the selected region, and that the role "r" has "s3:ListBucket" permissions on bucket "b".',
        "data",
        "data",
    ),
    ("ValidationException", "1 validation error detected: Value 'x' at 'y'", "invalid", "render"),
    ("SomethingNew", "of which nobody has heard", "invalid", "render"),
]


@pytest.mark.parametrize(("code", "message", "cause", "hint"), REFUSALS)
def test_what_the_service_refuses(aws: Aws, client: Client, code: str, message: str, cause: str, hint: str) -> None:
    aws.troubles = [Trouble("CreateTrainingJob", code=code, message=message)]
    request = request_of(CPU)
    with pytest.raises(RefusedError) as caught:
        client.create(request)
    assert caught.value.cause == cause
    assert hint in (caught.value.hint or "")
    for part in (request.name, REGION, code, message):
        assert part in caught.value.message
    assert aws.operations() == ["CreateTrainingJob"]  # nothing is asked again


def test_a_request_that_botocore_does_not_send(aws: Aws, client: Client) -> None:
    request = request_of(CPU)
    broken = request._replace(native={**request.native, "Hyperdrive": 1})
    with pytest.raises(RefusedError, match="Hyperdrive") as caught:
        client.create(broken)
    assert caught.value.cause == "invalid"
    assert not aws.calls


def test_messages_hold_nothing_that_a_terminal_obeys(aws: Aws, client: Client) -> None:
    aws.troubles = [Trouble("CreateTrainingJob", code="Odd\x1b[2J", message="a\x1b]0;b\x07\nc")]
    with pytest.raises(RefusedError) as caught:
        client.create(request_of(CPU))
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    "trouble",
    [
        Trouble("DescribeTrainingJob", 99, "ThrottlingException", 400, "Rate exceeded"),
        Trouble("DescribeTrainingJob", 99, "InternalFailure", 500),
        Trouble("DescribeTrainingJob", 99, "ServiceUnavailable", 503),
        Trouble("DescribeTrainingJob", 99),
    ],
)
def test_what_stays_so_after_all_repetitions(aws: Aws, client: Client, trouble: Trouble) -> None:
    aws.troubles = [trouble]
    with pytest.raises(UnreachableError, match=REGION):
        client.describe("x")
    assert aws.operations() == ["DescribeTrainingJob"] * 3  # as AWS_MAX_ATTEMPTS says in these tests


@pytest.mark.parametrize("page", [b"<html>log in</html>", b"", b"[1, 2]", b"\xff\xfe", b"{}", b"null"])
def test_answers_that_are_none(aws: Aws, client: Client, page: bytes) -> None:
    """A proxy that wants a login, say."""
    aws.page = page
    for ask in (lambda: client.describe("x"), lambda: client.create(request_of(CPU)), lambda: list(client.list())):
        with pytest.raises(UnreachableError, match=REGION):
            ask()


@pytest.mark.parametrize("time", [b"1e300", b"-1e12"])
def test_a_time_that_no_calendar_has(aws: Aws, client: Client, time: bytes) -> None:
    aws.page = b'{"TrainingJobName": "x", "CreationTime": ' + time + b"}"
    with pytest.raises(UnreachableError, match="makes no sense"):
        client.describe("x")


class TestHalfAnswers:
    """botocore takes half of an answer for a whole one; earlier versions, which see it, ask again themselves."""

    @pytest.mark.usefixtures("boto")
    def test_are_asked_for_again(self, aws: Aws, client: Client) -> None:
        request = request_of(CPU)
        client.create(request)
        whole = client.describe(request.name)
        aws.calls.clear()
        for operation in ("DescribeTrainingJob", "ListTrainingJobs", "ListObjectsV2"):
            aws.troubles.append(Trouble(operation, half=True))
        assert client.describe(request.name) == whole
        assert [seen.name for seen in client.list()] == [request.name]
        assert list(client.artefacts(request.name)) == []
        for operation in ("DescribeTrainingJob", "ListTrainingJobs", "ListObjectsV2"):
            assert aws.operations(operation)[1:2] == [operation]

    def test_of_create(self, aws: Aws, client: Client) -> None:
        aws.troubles = [Trouble("CreateTrainingJob", half=True)]
        request = request_of(CPU)
        assert client.create(request).native_id == request.name
        assert len(aws.jobs.known) == 1
        assert aws.operations()[-1] == "DescribeTrainingJob"

    def test_for_ever(self, aws: Aws, client: Client) -> None:
        aws.troubles = [Trouble("ListTrainingJobs", 99, half=True)]
        with pytest.raises(UnreachableError, match=REGION):
            list(client.list())
        assert len(aws.calls) < 10


@pytest.mark.usefixtures("credentials")
class TestNobodyAnswers:
    @pytest.mark.parametrize(
        "ask",
        [
            lambda client: client.describe("x"),
            lambda client: client.stop("x"),
            lambda client: client.find(request_of(CPU)),
            lambda client: client.create(request_of(CPU)),
            lambda client: client.upload(request_of(CPU), None),
            lambda client: client.logs("x", {}),
            lambda client: list(client.list()),
            lambda client: list(client.artefacts("x")),
        ],
    )
    def test_at_a_port(self, monkeypatch: pytest.MonkeyPatch, ask: Callable[[Any], Any]) -> None:
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        with socket.create_server(("127.0.0.1", 0)) as server:
            monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(UnreachableError, match="no answer from AWS") as caught:
            ask(connect())
        assert "AWS_ENDPOINT_URL" in (caught.value.hint or "")

    def test_in_a_region_that_is_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
        with pytest.raises(UnreachableError, match="xx-nowhere-1") as caught:
            connect("xx-nowhere-1").describe("x")
        assert "sagemaker.region" in (caught.value.hint or "")

    @pytest.mark.parametrize("region", ["not a region", "eu_west_1", "-"])
    def test_in_what_is_no_region(self, region: str) -> None:
        with pytest.raises(MissingError, match="no AWS region") as caught:
            connect(region).describe("x")
        assert "sagemaker.region" in (caught.value.hint or "")


def test_no_region_at_all() -> None:
    with pytest.raises(MissingError, match=r"sagemaker\.region"):
        registry.connect("sagemaker", {})


def test_without_boto3(monkeypatch: pytest.MonkeyPatch, credentials: None) -> None:
    monkeypatch.setitem(sys.modules, "boto3.session", None)
    with pytest.raises(MissingError, match="boto3") as caught:
        connect()
    assert "cloudtrain[sagemaker]" in (caught.value.hint or "")


def test_calls_are_bounded_in_time_and_number(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what botocore itself says of its client's configuration."""
    monkeypatch.delenv("AWS_MAX_ATTEMPTS")
    client: Any = connect()
    for made in (client._services.sagemaker, client._services.s3, client._services.logs):
        config = made.meta.config
        assert (config.connect_timeout, config.read_timeout) == (10, 60)
        assert config.retries == {"mode": "standard", "total_max_attempts": 10}


def test_aws_is_told_who_asks(aws: Aws, client: Client) -> None:
    with pytest.raises(RefusedError):
        client.describe("x")
    assert "cloudtrain" in aws.calls[-1].agent


class _NoSuchJob(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        answer = b'{"__type": "ValidationException", "message": "Requested resource not found."}'
        self.send_response(400)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.mark.usefixtures("credentials")
def test_connections_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """To a server that leaves them open, as AWS's do."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _NoSuchJob) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        before, client = sockets(), connect()
        with pytest.raises(RefusedError):
            client.describe("digits")
        assert sockets() > before
        for _ in range(2):
            client.close()
            assert_back_to(before)
        server.shutdown()
        thread.join()
