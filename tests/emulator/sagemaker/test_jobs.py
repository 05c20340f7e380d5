"""A job of ours as a user has it: translated, uploaded and sent by our port, run by launch.py in real containers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cloudtrain.emulator.nodes import Nodes
from cloudtrain.job import Job
from cloudtrain.providers import registry
from cloudtrain.providers.base import Request
from cloudtrain.providers.port import Client, LogLine
from cloudtrain.providers.shipping import bundle_of
from cloudtrain.record.state import State
from cloudtrain.rendering.request import request_for
from tests.emulator.sagemaker.aws import Aws, opened, until

TRAINS = """
import os, pathlib
import torch, torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
total = torch.tensor([float(rank + 1)])
dist.all_reduce(total)
print("sum", total.item(), "world", dist.get_world_size(), flush=True)
data = pathlib.Path(os.environ["CLOUDTRAIN_DATA_TRAIN"])
for variable, name in (("MODEL_DIR", "weights"), ("OUTPUT_DIR", "said"), ("OUTPUT_TABLES", "rows")):
    pathlib.Path(os.environ[f"CLOUDTRAIN_{variable}"], f"{name}-{rank}").write_text((data / "a/note").read_text())
pathlib.Path(os.environ["CLOUDTRAIN_CHECKPOINT_DIR"], f"step-{rank}").write_text("1")
pathlib.Path(os.environ["CLOUDTRAIN_METRICS_DIR"], f"rank-{rank}.jsonl").write_text('{"step": 1, "loss": 0.5}\\n')
dist.barrier()
dist.destroy_process_group()
"""
SAVES = """
import os, pathlib, signal, sys, time



def save(*_):
    pathlib.Path(os.environ["CLOUDTRAIN_CHECKPOINT_DIR"], "step").write_text("7")
    print("saved", flush=True)
    sys.exit()


signal.signal(signal.SIGTERM, save)
print("waits", flush=True)
while True:
    time.sleep(0.05)
"""
FAILS = "raise RuntimeError('no luck today')"
JOB = """
name: digits
entry: train.py
resources: {{nodes: {nodes}, processes_per_node: 1, instance: ml.m5.xlarge}}
data: {{train: {{uri: "s3://cloudtrain-emulator/data/"}}}}
outputs: {{tables: {{local: tables}}}}
{extra}
"""


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aws]:
    with opened(tmp_path_factory.mktemp("aws"), start_nodes=Nodes) as account:
        account.s3.put_object(Bucket="cloudtrain-emulator", Key="data/a/note", Body=b"from the bucket")
        yield account


@pytest.fixture
def submit(aws: Aws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Client, Request]]:
    for name, value in aws.variables.items():
        monkeypatch.setenv(name, value)

    def submitted(script: str, nodes: int = 1, extra: str = "", **changes: Any) -> tuple[Client, Request]:
        (tmp_path / "train.py").write_text(script)
        (tmp_path / "job.yaml").write_text(JOB.format(nodes=nodes, extra=extra))
        job = Job.load(tmp_path / "job.yaml").with_(**changes)
        bundle = bundle_of(job)
        request = request_for(job, "sagemaker", bundle)
        client = registry.connect("sagemaker", request.account)
        client.upload(request, bundle)
        client.create(request)
        return client, request

    return submitted


def _lines(client: Client, name: str, last: str) -> list[LogLine]:
    """All lines up to one that says ``last``."""
    found: list[LogLine] = []
    cursor: Any = {}

    def look() -> bool:
        nonlocal cursor
        page = client.logs(name, cursor)
        found.extend(page.lines)
        cursor = page.cursor
        return any(last in line.text for line in found)

    until(look, f"somebody says {last}")
    return found


def test_two_nodes(aws: Aws, submit: Callable[..., tuple[Client, Request]], tmp_path: Path) -> None:
    client, request = submit(TRAINS, nodes=2)
    assert aws.plane.requests[-1] == request.native
    ended = until(lambda: (found := client.describe(request.name)).state.is_final and found, "the job ends")
    lines = _lines(client, request.name, "exit code")
    assert (ended.state, ended.reason) == (State.SUCCEEDED, ""), lines
    said = sorted((line.node, line.rank, line.text) for line in lines if line.text.startswith("sum"))
    assert said == [(0, 0, "sum 3.0 world 2"), (1, 1, "sum 3.0 world 2")]
    kinds = {artefact.kind for artefact in client.artefacts(request.name)}
    assert kinds >= {"model", "output", "metrics", "checkpoints", "outputs/tables"}
    for artefact in client.artefacts(request.name):
        client.fetch(artefact, tmp_path / "left" / artefact.kind)
    assert (tmp_path / "left/model/weights-1").read_text() == "from the bucket"
    assert (tmp_path / "left/outputs/tables/rows-0").read_text() == "from the bucket"
    assert (tmp_path / "left/checkpoints/step-1").read_text() == "1"


def test_a_job_that_is_stopped_saves(submit: Callable[..., tuple[Client, Request]], tmp_path: Path) -> None:
    client, request = submit(SAVES)
    lines = _lines(client, request.name, "waits")
    client.stop(request.name)
    ended = until(lambda: (found := client.describe(request.name)).state.is_final and found, "the job ends")
    assert ended.state is State.STOPPED, lines
    lines = _lines(client, request.name, "exit code")
    assert [line.text for line in lines if line.rank == 0] == ["waits", "saved"]
    (kept,) = [artefact for artefact in client.artefacts(request.name) if artefact.kind == "checkpoints"]
    client.fetch(kept, tmp_path / "kept")
    assert (tmp_path / "kept/step").read_text() == "7"


def test_the_reason_of_a_failure_is_the_scripts(submit: Callable[..., tuple[Client, Request]]) -> None:
    client, request = submit(FAILS)
    ended = until(lambda: (found := client.describe(request.name)).state.is_final and found, "the job ends")
    assert (ended.state, ended.cause) == (State.FAILED, "user-code")
    assert "RuntimeError: no luck today" in ended.reason
    assert ended.reason.endswith("exit code: 1")
