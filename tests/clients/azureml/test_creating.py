"""Create: once, whatever happens to the answers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest

from cloudtrain.errors import MissingError, RefusedError, UnreachableError
from cloudtrain.providers import registry
from cloudtrain.providers.base import Request
from cloudtrain.providers.written import as_yaml
from cloudtrain.record.state import State
from tests.clients.azureml.answers import Fault, cut, error, fault, lost
from tests.clients.azureml.service import Service
from tests.providers.azureml.jobs import request as request_of
from tests.providers.azureml.vendor import wire

pytestmark = pytest.mark.usefixtures("vendor")

FORM = {
    "resources": {"nodes": 2},
    "limits": {"runtime": "1h"},
    "data": {"train": {"uri": {"azureml": "azureml://datastores/data/paths/train/"}}},
    "tags": {"team": "vision"},
}


@pytest.fixture
def wanted(service: Service) -> Request:
    """A request whose code is there."""
    request = request_of(**FORM)
    service.has_code(request)
    return request


def test_what_is_sent_is_what_the_vendors_loader_makes_of_the_form(
    service: Service, client: Any, wanted: Request, tmp_path: Path
) -> None:
    client.create(wanted)
    (sent,) = (body for operation, body in service.bodies if operation == "PutJob")
    (tmp_path / "form" / "code").mkdir(parents=True)
    (tmp_path / "form" / "job.yml").write_text(as_yaml(wanted.native))
    loaded = wire(tmp_path / "form" / "job.yml")["properties"]
    made_on_the_way = {"codeId", "environmentId"}
    assert {**sent["properties"], **dict.fromkeys(made_on_the_way)} == {**loaded, **dict.fromkeys(made_on_the_way)}
    assert sent["properties"]["codeId"] == next(iter(service.codes.values()))["id"]
    assert sent["properties"]["properties"] == {}, "facts of the git repository that the tests stand in"


def test_a_job_that_runs_as_its_user_takes_a_token_along(service: Service, client: Any) -> None:
    request = request_of(identity="user")
    service.has_code(request)
    client.create(request)
    ((operation, token),) = service.tokens
    claims = jwt.decode(token, options={"verify_signature": False})
    assert (operation, claims["aud"]) == ("PutJob", "https://ml.azure.com")


def test_the_environment_is_left_as_it_was(
    service: Service, client: Any, wanted: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/of/the/user")
    monkeypatch.setenv("AZUREML_GIT_BRANCH", "main")
    before = dict(os.environ)
    client.create(wanted)
    assert dict(os.environ) == before


def test_code_that_was_not_uploaded_is_told(client: Any) -> None:
    with pytest.raises(MissingError, match="has not been uploaded"):
        client.create(request_of())


@pytest.mark.parametrize("done", [True, False], ids=["done", "not-done"])
@pytest.mark.parametrize(
    "answer", [lost, cut, fault(500), fault(503), fault(429, "TooManyRequests", Retry_After="1"), fault(504)]
)
def test_after_an_answer_that_says_nothing_the_service_is_asked(
    service: Service, client: Any, wanted: Request, answer: Fault, done: bool
) -> None:
    service.will("PutJob", answer, done=done)
    made = client.create(wanted)
    assert made.state is State.PENDING
    assert list(service.jobs) == [wanted.name]
    assert service.times("PutJob") == (1 if done else 2)


def test_a_burst_of_refusals_to_answer_is_waited_out(service: Service, client: Any, wanted: Request) -> None:
    service.will("PutJob", fault(429, "TooManyRequests"), fault(503))
    service.will("PutEnvironment", fault(503))
    service.will("GetJob", fault(429, "TooManyRequests"))
    client.create(wanted)
    assert list(service.jobs) == [wanted.name]


def test_a_token_that_has_expired_is_replaced(service: Service, client: Any, wanted: Request) -> None:
    service.will("PutJob", fault(401, "ExpiredAuthenticationToken"))
    service.will("GetJob", fault(401, "ExpiredAuthenticationToken"))
    client.create(wanted)
    assert list(service.jobs) == [wanted.name]


def test_credentials_that_nobody_takes_are_missing(service: Service, client: Any, wanted: Request) -> None:
    service.will("GetJob", *[fault(401, "InvalidAuthenticationToken", "who is this") for _ in range(2)])
    with pytest.raises(MissingError, match="who is this") as raised:
        client.create(wanted)
    assert not isinstance(raised.value, UnreachableError)
    assert "az login" in str(raised.value.hint)


def test_creating_twice_is_creating_once(service: Service, client: Any, wanted: Request) -> None:
    assert client.create(wanted) == client.create(wanted)
    assert client.find(wanted) == client.create(wanted)
    assert service.times("PutJob") == 1


def test_another_job_of_the_name_is_left_alone(service: Service, client: Any, wanted: Request) -> None:
    service.has_job(wanted.name, tags={"owner": "somebody"})
    for call in (client.create, client.find):
        with pytest.raises(RefusedError, match=r"another job .* is called"):
            call(wanted)
    assert service.times("PutJob") == 0
    assert service.jobs[wanted.name]["properties"]["tags"] == {"owner": "somebody"}


@pytest.mark.parametrize("equal", [True, False], ids=["equal", "other"])
def test_a_job_that_somebody_made_in_between(service: Service, client: Any, wanted: Request, equal: bool) -> None:
    variables = wanted.native["environment_variables"] if equal else {}

    def taken(_: Any) -> Any:
        service.has_job(wanted.name, "Queued", environmentVariables=variables)
        return error(400, "UserError", "A job with this name exists", "Immutable", "JobPropertyImmutable")

    service.will("PutJob", taken)
    if equal:
        assert client.create(wanted).vendor_state == "Queued"
    else:
        with pytest.raises(RefusedError, match="another job"):
            client.create(wanted)
    assert service.times("PutJob") == 1


@pytest.mark.parametrize(
    "answer, cause, words",
    [
        (
            lambda _: error(400, "UserError", "a vCPU quota\n of 0 \x1b[31m", "JobNodeCountExceedsCoreQuota"),
            "quota",
            "a vCPU quota of 0",
        ),
        (lambda _: error(409, "Conflict", "AllocationFailed: no room"), "capacity", "no room"),
        (lambda _: error(403, "AuthorizationFailed", "does not have authorization"), "permission", "authorization"),
        (lambda _: error(404, "UserError", "Compute x was not found"), "invalid", "Compute x was not found"),
        (lambda _: error(400, "UserError", "instanceCount is bad", "BadArgument"), "invalid", "BadArgument"),
    ],
)
def test_what_the_service_refuses_is_refused_with_its_words(
    service: Service, client: Any, wanted: Request, answer: Callable[[Any], Any], cause: str, words: str
) -> None:
    service.will("PutJob", answer)
    with pytest.raises(RefusedError) as raised:
        client.create(wanted)
    assert raised.value.cause == cause
    assert words in raised.value.message
    assert raised.value.message.isprintable()
    assert (service.jobs, service.times("PutJob")) == ({}, 1)


def test_a_form_that_the_vendors_client_refuses_is_refused(service: Service, client: Any, wanted: Request) -> None:
    native = {**wanted.native, "inputs": {"train": {"type": "uri_folder", "path": ""}}}
    with pytest.raises(RefusedError, match=r"^azure-ai-ml refuses the form: Input path can't be empty for jobs.$"):
        client.create(wanted._replace(native=native))


def test_without_a_service_nothing_hangs(account: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDTRAIN_ENDPOINT_AZUREML", "https://127.0.0.1:1")
    client: Any = registry.connect("azureml", account)
    with pytest.raises(UnreachableError, match="cannot look at job"):
        client.find(request_of())
    client.close()


def test_without_a_login_the_next_step_is_said(
    account: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("CLOUDTRAIN_ENDPOINT_AZUREML", "AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "AzureCliCredential")
    monkeypatch.setenv("PATH", str(tmp_path))
    client: Any = registry.connect("azureml", account)
    with pytest.raises(MissingError, match="no Azure credentials") as raised:
        client.find(request_of())
    assert "az login" in str(raised.value.hint)
    client.close()
