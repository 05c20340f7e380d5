"""What the emulator as a whole sees of this plane."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from cloudtrain.emulator.base import Clock, Site
from cloudtrain.emulator.faults import Faults
from cloudtrain.emulator.vertex.plane import open_plane
from cloudtrain.errors import MissingError
from cloudtrain.settings import settings_for
from tests.emulator.vertex.conftest import Opened
from tests.emulator.vertex.plain_nodes import start_nodes


def test_its_variables_are_all_the_settings_that_a_job_needs(
    vertex: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in vertex.variables.items():
        monkeypatch.setenv(name, value)
    settings = settings_for("vertex", tmp_path)
    assert not settings.missing
    bucket = vertex.clients.storage.get_bucket(settings["bucket"])
    assert list(bucket.list_blobs(prefix="nothing/")) == []


@pytest.mark.parametrize("package", ["grpc", "google.cloud.logging_v2"])
def test_it_says_which_package_is_missing(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingError, match=package) as error:
        open_plane(Site(tmp_path, Clock(60), Faults.none(), start_nodes))
    assert "pip install" in str(error.value)


def test_faults_of_calls_are_in_googles_words(vertex: Opened) -> None:
    for status, code in (
        (429, "RESOURCE_EXHAUSTED"),
        (401, "UNAUTHENTICATED"),
        (503, "UNAVAILABLE"),
        (502, "INTERNAL"),
    ):
        body, headers = vertex.plane.fault_response(status, "throttle", "too many")
        assert json.loads(body) == {"error": {"code": status, "message": "too many", "status": code}}
        assert headers["Content-Type"].startswith("application/json")
