"""A job of ours as a user has it: translated, uploaded and sent by our port, run by launch.py in containers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
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
from tests.emulator.vertex.clients import until
from tests.emulator.vertex.conftest import Opened, opened

_TRAIN = """
import os, pathlib, signal, sys, time
import torch, torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
total = torch.tensor([float(rank + 1)])
dist.all_reduce(total)
print("sum", total.item(), "world", dist.get_world_size(), flush=True)
pathlib.Path(os.environ["CLOUDTRAIN_CHECKPOINT_DIR"], f"step-{rank}").write_text(f"step of {rank}")


def saved(*_):
    print("saved", flush=True)
    sys.exit(0)


if "--wait" in sys.argv:
    signal.signal(signal.SIGTERM, saved)
    print("waiting", flush=True)
    while True:
        time.sleep(0.05)
data = pathlib.Path(os.environ["CLOUDTRAIN_DATA_TRAIN"])
if rank == 0:
    from google.cloud import storage

    bucket = storage.Client().bucket("cloudtrain-emulator")
    pathlib.Path(os.environ["CLOUDTRAIN_MODEL_DIR"], "weights").write_text((data / "a/note").read_text())
    pathlib.Path(os.environ["CLOUDTRAIN_OUTPUT_DIR"], "said").write_text(bucket.blob("data/a/note").download_as_text())
pathlib.Path(os.environ["CLOUDTRAIN_METRICS_DIR"], f"rank-{rank}.jsonl").write_text('{"step": 1, "loss": 0.5}\\n')
dist.barrier()
dist.destroy_process_group()
"""
_PARENT = "projects/cloudtrain-emulator/locations/us-central1"
_JOB = """
name: digits
entry: train.py
resources: {nodes: %d, processes_per_node: 1, instance: n1-standard-4}
environment: {image: "europe-docker.pkg.dev/p/i/train:1"}
data: {train: {uri: "gs://cloudtrain-emulator/data/"}}
"""


@pytest.fixture(scope="module")
def vertex(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    with opened(tmp_path_factory.mktemp("training") / "site", start=Nodes) as found:
        found.clients.bucket.blob("data/a/note").upload_from_string("from the bucket")
        yield found


@pytest.fixture
def submit(
    vertex: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[Client, Request, str]]:
    for name, value in vertex.variables.items():
        monkeypatch.setenv(name, value)

    def submitted(nodes: int, *args: str) -> tuple[Client, Request, str]:
        _write(tmp_path, nodes)
        job = Job.load(tmp_path / "job.yaml").with_(args=list(args))
        bundle = bundle_of(job)
        request = request_for(job, "vertex", bundle)
        client = registry.connect("vertex", request.account)
        client.upload(request, bundle)
        return client, request, client.create(request).native_id

    return submitted


def _write(folder: Path, nodes: int) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(_TRAIN)
    (folder / "job.yaml").write_text(_JOB % nodes)


def _lines(client: Client, native_id: str, wanted: Callable[[list[LogLine]], bool]) -> list[LogLine]:
    found: list[LogLine] = []
    cursor: Any = {}

    def look() -> list[LogLine]:
        nonlocal cursor
        page = client.logs(native_id, cursor)
        found.extend(page.lines)
        cursor = page.cursor
        return found

    return list(until(look, wanted))


def test_two_nodes(vertex: Opened, submit: Callable[..., tuple[Client, Request, str]], tmp_path: Path) -> None:
    client, request, native_id = submit(2)
    assert vertex.plane.requests[-1] == request.native
    ended = until(lambda: client.describe(native_id), lambda found: found.state.is_final)
    assert (ended.state, ended.name, ended.run_id) == (State.SUCCEEDED, request.name, request.spec["run_id"])
    lines = _lines(client, native_id, lambda lines: any("completed successfully" in line.text for line in lines))
    said = sorted((line.node, line.rank, line.text) for line in lines if line.text.startswith("sum"))
    assert said == [(0, 0, "sum 3.0 world 2"), (1, 1, "sum 3.0 world 2")]
    left = {(each.kind, each.path): each for each in client.artefacts(native_id)}
    assert left.keys() >= {
        ("model", "weights"), ("output", "said"), ("checkpoints", "step-0"), ("checkpoints", "step-1"),
    }  # fmt: skip
    assert {path for kind, path in left if kind == "metrics"} == {"rank-0.jsonl", "rank-1.jsonl"}
    for name in ("model", "weights"), ("output", "said"):
        client.fetch(left[name], tmp_path / "fetched")
        assert (tmp_path / "fetched" / name[1]).read_text() == "from the bucket"


def test_stop_lets_a_job_save(vertex: Opened, submit: Callable[..., tuple[Client, Request, str]]) -> None:
    client, _, native_id = submit(1, "--wait")
    _lines(client, native_id, lambda lines: any(line.text == "waiting" for line in lines))
    client.stop(native_id)
    ended = until(lambda: client.describe(native_id), lambda found: found.state.is_final)
    assert ended.state is State.STOPPED
    _lines(client, native_id, lambda lines: any(line.text == "saved" for line in lines))


def test_the_way_out_works(vertex: Opened, tmp_path: Path) -> None:
    """What ``render -o cli`` writes, done by the real gcloud: upload, create, and no cloudtrain any more."""
    if shutil.which("gcloud") is None:  # in no package registry, so that CI cannot be asked to have it
        pytest.skip("gcloud is not installed")
    env = {**os.environ, **vertex.variables, "CLOUDSDK_CONFIG": str(tmp_path / "gcloud")}
    env |= {"CLOUDSDK_CORE_DISABLE_PROMPTS": "1", "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true"}
    _write(tmp_path / "project", 1)
    cloudtrain = str(Path(sys.executable).with_name("cloudtrain"))
    render = [cloudtrain, "render", "project/job.yaml", "--provider", "vertex", "-o", "cli", "--out", "way-out"]
    for command in render, ["sh", "way-out/submit.sh"]:
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    name = next(iter(vertex.clients.jobs.list_custom_jobs(parent=_PARENT))).name
    assert vertex.clients.ended(name).state.name == "JOB_STATE_SUCCEEDED"
    logs = ["gcloud", "logging", "read", f'resource.labels.job_id="{name.rpartition("/")[2]}"']
    said = subprocess.run([*logs, "--format=value(jsonPayload.message)"], env=env, capture_output=True, check=True)
    assert b"[0/0] sum 1.0 world 1\n" in said.stdout
