"""A run's life against the emulator, whose nodes are real, while calls fail."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cloudtrain.job import Job
from cloudtrain.providers import registry
from cloudtrain.providers.port import Description, LogLine
from cloudtrain.providers.shipping import bundle_of
from cloudtrain.record.state import State
from cloudtrain.rendering.request import render
from tests.emulator.azureml.emulated import LIMIT_SECONDS, emulated

pytestmark = pytest.mark.xdist_group("processes")

FAULTS = """
calls:
  - {operation: Jobs_CreateOrUpdate, fault: lost}
  - {operation: Runs_GetDetails, fault: cut, times: 2}
  - {operation: Jobs_Get, fault: expired-token}
  - {operation: CodeVersions_CreateOrUpdate, fault: throttle}
  - {operation: "*", fault: error, status: 503, share: 0.05}
"""
SCRIPT = """
import os, pathlib
for number in range(500):
    print("line", number)
pathlib.Path(os.environ["CLOUDTRAIN_MODEL_DIR"], "rank-" + os.environ["RANK"]).write_text("weights")
"""


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Any]:
    (tmp_path / "emulator").mkdir()
    with emulated(tmp_path / "emulator", speed=240, faults=FAULTS):
        names = ("subscription", "resource_group", "workspace")
        account = {name: os.environ[f"CLOUDTRAIN_AZUREML_{name.upper()}"] for name in names}
        client: Any = registry.connect("azureml", account)
        yield client
        client.close()


def followed(client: Any, name: str) -> tuple[Description, list[LogLine]]:
    """To its end, and to that of its lines."""
    lines: list[LogLine] = []
    cursor: Any = {}
    until, quiet = time.monotonic() + LIMIT_SECONDS, 0
    while quiet < 3:
        seen = client.describe(name)
        assert time.monotonic() < until, seen
        page = client.logs(name, cursor)
        cursor = page.cursor
        lines += page.lines
        quiet = quiet + 1 if seen.state.is_final and page.caught_up and not page.lines else 0
        time.sleep(0.1)
    return seen, lines


def test_a_run(client: Any, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(SCRIPT)
    (project / "job.yaml").write_text("name: small\nentry: train.py\nresources: {nodes: 2, processes_per_node: 2}\n")
    job = Job.load(project / "job.yaml")
    request = render(job, "azureml")
    assert client.upload(request, bundle_of(job)).sent > 0
    made = client.create(request)
    assert made == client.create(request)._replace(state=made.state, vendor_state=made.vendor_state)
    assert [job.name for job in client.list(request.spec["run_id"])] == [request.name]

    seen, lines = followed(client, request.name)
    assert (seen.state, seen.nodes, seen.reason) == (State.SUCCEEDED, 2, "")
    assert made.created is not None and seen.started is not None and seen.ended is not None
    assert made.created <= seen.started <= seen.ended
    for rank in range(4):
        printed = [line.text for line in lines if line.rank == rank]
        assert printed == [f"line {number}" for number in range(500)]
    assert {line.node for line in lines if line.rank is None} == {0, 1}

    for artefact in client.artefacts(request.name):
        client.fetch(artefact, tmp_path / "left" / artefact.kind)
    model = {path.name: path.read_text() for path in (tmp_path / "left" / "model").iterdir()}
    assert model == {f"rank-{rank}": "weights" for rank in range(4)}
    client.stop(request.name)
