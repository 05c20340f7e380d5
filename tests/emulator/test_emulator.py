"""The emulator from Python: opened, asked, closed, in tests of one's own; and the servers beside it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest
import requests

from cloudtrain.emulator import Emulator, servers
from cloudtrain.emulator.faults import Faults
from cloudtrain.errors import MissingError, SpecError
from tests.local.project import LIMIT_SECONDS, require


def test_two_at_once_have_nothing_in_common_and_leave_nothing(temporary: Path) -> None:
    threads, children = threading.active_count(), psutil.Process().children(recursive=True)
    with Emulator(["vertex"]) as one, Emulator(["vertex"], speed=10, faults=Faults.none()) as other:
        assert one.url("vertex") != other.url("vertex")
        assert one.env["STORAGE_EMULATOR_HOST"] != other.env["STORAGE_EMULATOR_HOST"]
        for emulator in (one, other):
            assert emulator.providers == ("vertex",)
            assert emulator.missing == {}
            assert requests.get(emulator.url("vertex"), timeout=30).ok
            assert emulator.environment({"A": "b"})["A"] == "b"
        assert len(list(temporary.iterdir())) == 2
    one.close()  # once more is no fault
    with pytest.raises(SpecError, match="vertex is not emulated here"):
        one.plane("vertex")
    assert threading.active_count() == threads
    assert psutil.Process().children(recursive=True) == children


def test_what_is_asked_for_wrongly(temporary: Path, tmp_path: Path) -> None:
    (tmp_path / "faults.yaml").write_text("calls: [{}]")
    with pytest.raises(SpecError, match="unknown provider 'aws'"):
        Emulator(["aws"])
    with pytest.raises(SpecError, match="at least one provider"):
        Emulator([])
    with pytest.raises(SpecError, match="a speed above 0"):
        Emulator(["vertex"], speed=0)
    with pytest.raises(SpecError, match=r"faults\.yaml:1:9: calls\[0\]\.fault: is missing"):
        Emulator(["vertex"], faults=tmp_path / "faults.yaml")


def test_what_does_not_open_takes_along_what_did(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    children = psutil.Process().children(recursive=True)
    monkeypatch.setenv("PATH", str(temporary))  # without azurite
    monkeypatch.setattr(sys, "prefix", str(temporary))
    with pytest.raises(MissingError, match="azurite, which stands for Blob storage, is missing"):
        Emulator(["vertex", "azureml"])
    assert psutil.Process().children(recursive=True) == children


def test_a_server_that_does_not_start_is_told_with_its_last_words(tmp_path: Path) -> None:
    def command(_: int) -> list[str]:
        return ["sh", "-c", "echo no room >&2; exit 1"]

    server = servers.Server("the server", command, tmp_path / "log", "make room")
    with pytest.raises(MissingError, match="the server did not start; it said: no room") as caught:
        server.wait()
    assert caught.value.hint == "make room"
    with pytest.raises(MissingError, match="cannot be started"):
        servers.Server("the server", lambda _: ["/no/such/program"], tmp_path / "log", "")


def test_a_server_gets_another_port_if_its_own_is_taken(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(
        "import pathlib, sys\n"
        "from http.server import HTTPServer, SimpleHTTPRequestHandler\n"
        "tried = pathlib.Path(sys.argv[2])\n"
        "if not tried.exists():\n"
        "    tried.write_text(sys.argv[1])\n"
        "    sys.exit('address in use')\n"
        "HTTPServer(('127.0.0.1', int(sys.argv[1])), SimpleHTTPRequestHandler).serve_forever()\n"
    )

    def command(port: int) -> list[str]:
        return [sys.executable, str(tmp_path / "server.py"), str(port), str(tmp_path / "tried")]

    server = servers.Server("the server", command, tmp_path / "log", "")
    server.wait()
    assert requests.get(server.url, timeout=30).status_code == 200
    assert server.url.endswith(f":{server.port}")
    server.close()
    server.close()
    with pytest.raises(requests.ConnectionError):
        requests.get(server.url, timeout=30)


@pytest.mark.parametrize("kind", ["azurite", "fake_gcs_server"])
def test_the_servers_answer_and_end_with_whoever_started_them(tmp_path: Path, kind: str) -> None:
    require(kind != "azurite" or _has_azurite(), "azurite is not installed")
    arguments = "folder" if kind == "azurite" else "folder, folder / 'log'"
    program = (
        "import os, pathlib, time\n"
        "from cloudtrain.emulator import servers\n"
        f"folder = pathlib.Path({str(tmp_path)!r})\n"
        f"server = servers.{kind}({arguments})\n"
        "server.wait()\n"
        "print(server.url, flush=True)\n"
        "time.sleep(600)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert owner.stdout
        url = owner.stdout.readline().strip()
        assert requests.get(url, timeout=30).status_code in (400, 404)
        children = psutil.Process(owner.pid).children(recursive=True)
        assert children
    finally:
        owner.kill()
        owner.communicate()
    assert psutil.wait_procs(children, timeout=30)[1] == []


def _has_azurite() -> bool:
    try:
        return bool(servers.azurite_program())
    except MissingError:
        return False


USERS_TESTS = """
import os, pytest, requests

def test_before():
    assert (os.environ["AWS_PROFILE"], os.environ["CLOUDTRAIN_HOME"]) == ("real", "/the/users/own")
    assert "STORAGE_EMULATOR_HOST" not in os.environ

@pytest.mark.cloudtrain_emulator(["vertex"], faults="faults.yaml", speed=600)
def test_within(cloudtrain_emulator):
    assert "AWS_PROFILE" not in os.environ
    assert os.environ["CLOUDTRAIN_HOME"] != "/the/users/own"
    assert requests.get(os.environ["STORAGE_EMULATOR_HOST"] + "/storage/v1/b").status_code == 200
    url = os.environ["CLOUDTRAIN_ENDPOINT_VERTEX"] + "/v1/projects/p/locations/us-central1/customJobs"
    assert [requests.get(url).status_code for _ in range(2)] == [503, 200]
    assert cloudtrain_emulator.plane("vertex").requests == []

def test_after():
    test_before()
"""


def test_the_fixture_for_tests_of_ones_own(tmp_path: Path, temporary: Path) -> None:
    (tmp_path / "faults.yaml").write_text("calls: [{fault: error, status: 503}]")
    (tmp_path / "test_mine.py").write_text(USERS_TESTS)
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-W", "error", str(tmp_path)], check=False,
        env={**os.environ, "AWS_PROFILE": "real", "CLOUDTRAIN_HOME": "/the/users/own"},
        cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_SECONDS,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert "3 passed" in result.stdout


BY_GRPC = """
import os, pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud.aiplatform_v1 import JobServiceClient
from cloudtrain.emulator import Emulator

@pytest.mark.cloudtrain_emulator(["vertex"])
@pytest.mark.parametrize("number", [1, 2])
def test_it(cloudtrain_emulator, number):
    options = {"api_endpoint": os.environ["CLOUDTRAIN_ENDPOINT_VERTEX_GRPC"]}
    client = JobServiceClient(credentials=AnonymousCredentials(), client_options=options)
    assert client.transport.kind == "grpc"
    assert list(client.list_custom_jobs(parent="projects/p/locations/us-central1")) == []
    with Emulator(["vertex"]):  # starts a process beside threads of gRPC's
        pass
"""


def test_one_after_the_other_by_grpc_in_one_process(tmp_path: Path) -> None:
    """gRPC reads once whom to trust, and prints a line at every fork if it is let."""
    (tmp_path / "test_mine.py").write_text(BY_GRPC)
    env = {name: value for name, value in os.environ.items() if not name.startswith("GRPC_")}
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", str(tmp_path)], check=False, env=env, cwd=tmp_path,
        capture_output=True, text=True, timeout=LIMIT_SECONDS,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert "fork" not in result.stdout + result.stderr


def test_who_does_not_use_the_fixture_does_not_pay_for_it() -> None:
    """pytest loads its module wherever cloudtrain is installed."""
    program = (
        "import sys, pytest\n"
        "before = set(sys.modules)\n"
        "import cloudtrain.emulator.pytest_plugin\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded) == {"cloudtrain", "cloudtrain.emulator", "cloudtrain.emulator.pytest_plugin"}
