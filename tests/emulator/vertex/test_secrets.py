"""Secrets on their way from a client to a container."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from cloudtrain_launch.errors import LaunchError
from cloudtrain_launch.secret_stores import vertex as reader
from tests.emulator.vertex.conftest import Opened
from tests.emulator.vertex.scripts import play, text

_KNOWN = "projects/my-project/secrets/token"


def _call(vertex: Opened, path: str, body: Any) -> Any:
    call = urllib.request.Request(f"{vertex.url}/v1/projects/my-project/secrets{path}", data=json.dumps(body).encode())
    with urllib.request.urlopen(call) as answer:
        return json.loads(answer.read())


@pytest.fixture(scope="module")
def secret(vertex: Opened) -> str:
    """One with two versions."""
    assert _call(vertex, "?secretId=token", {"replication": {"automatic": {}}})["name"] == _KNOWN
    for number, content in enumerate(("first", "sécond"), 1):
        data = base64.b64encode(content.encode()).decode()
        made = _call(vertex, "/token:addVersion", {"payload": {"data": data}})
        assert made["name"] == f"{_KNOWN}/versions/{number}"
    return _KNOWN


def test_the_launcher_reads_them_in_a_container(vertex: Opened, secret: str) -> None:
    """By its own reader, with the variables that the container was given."""
    job = play(vertex.clients, "secrets", "(ours / 'env').write_text(json.dumps(dict(os.environ)))")
    vertex.clients.ended(job.name)
    env = json.loads(text(vertex.clients, "secrets", "env"))
    assert reader.read({"A": secret, "B": f"{secret}/versions/1"}, env) == {"A": "sécond", "B": "first"}
    with pytest.raises(LaunchError, match="not found"):
        reader.read({"A": f"{secret}/versions/3"}, env)


_DEFAULT = """
import json, google.auth
from google.auth.transport.requests import Request
credentials, project = google.auth.default()
credentials.refresh(Request())
(ours / 'found').write_text(json.dumps([credentials.token, project]))
"""


def test_googles_libraries_find_an_account_in_a_container(vertex: Opened) -> None:
    """As on Vertex AI, where the project that they find by it is Google's own."""
    script = f"import warnings; warnings.simplefilter('ignore'); os.environ.pop('GOOGLE_CLOUD_PROJECT', 0); {_DEFAULT}"
    job = play(vertex.clients, "account", script)
    assert vertex.clients.ended(job.name).state.name == "JOB_STATE_SUCCEEDED", vertex.clients.lines(
        job.name, "workerpool0-0"
    )
    token, project = json.loads(text(vertex.clients, "account", "found"))
    assert token == "emulated"
    assert project.endswith("-tp")


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("?secretId=token", {}, 409),
        ("?secretId=a+b", {}, 400),
        ("/other:addVersion", {"payload": {"data": ""}}, 404),
        ("/token:addVersion", {"payload": {"data": "?"}}, 400),
    ],
)
def test_refusals(vertex: Opened, secret: str, path: str, body: Any, status: int) -> None:
    with pytest.raises(urllib.error.HTTPError) as refusal:
        _call(vertex, path, body)
    refusal.value.close()
    assert refusal.value.code == status
