"""Jobs that run, sent by the vendor's own client, which knows the emulator by environment variables only."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests

from cloudtrain.providers.base import Request
from tests.cli.running import cloudtrain
from tests.emulator.azureml.emulated import Emulated, client, vendor
from tests.emulator.azureml.trainings import SCRIPT, training

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the vendor's packages, by each other

CALLS_OF_A_CREATE = [
    ("CodeVersions_List", "2023-04-01"),
    ("CodeVersions_CreateOrGetStartPendingUpload", "2023-04-01"),
    ("CodeVersions_CreateOrUpdate", "2023-04-01"),
    ("EnvironmentVersions_CreateOrUpdate", "2023-04-01-preview"),
    ("Jobs_CreateOrUpdate", "2025-01-01-preview"),
]
"""As they were traced with azure-ai-ml 1.35.2, for local code and an image in the form."""


def laid(azure: Emulated, folder: Path, **what: Any) -> Request:
    """A training, whose spec lies where its form says."""
    request = training(folder, **what)
    azure.put(f"cloudtrain/runs/{request.spec['run_id']}/spec/spec.json", (folder / "spec/spec.json").read_bytes())
    return request


def sent(azure: Emulated, folder: Path, **what: Any) -> Request:
    """A training, sent."""
    request = laid(azure, folder, **what)
    client().jobs.create_or_update(vendor().load_job(folder / "form.yml"))
    return request


def lines(azure: Emulated, name: str, file: str) -> list[str]:
    """What the ranks printed."""
    return [line for line in azure.log(name, file).splitlines() if "/-] " not in line]


class Completed(NamedTuple):
    """A job of two nodes that is over, and how it came there."""

    request: Request
    states: list[str]
    calls: list[tuple[str, str]]


@pytest.fixture(scope="module")
def completed(azure: Emulated, tmp_path_factory: pytest.TempPathFactory) -> Completed:
    azure.put("data/one.txt", b"from the datastore")
    data = "data: {train: {uri: 'azureml://datastores/workspaceblobstore/paths/data/'}}\n"
    folder = tmp_path_factory.mktemp("completed") / "job"
    request = laid(azure, folder, nodes=2, job=f"name: small\n{data}")
    before = len(azure.plane.calls)
    client().jobs.create_or_update(vendor().load_job(folder / "form.yml"))
    calls = [(call.operation, call.api_version) for call in azure.plane.calls[before:]]
    return Completed(request, azure.until_over(request.name), calls)


def test_two_nodes(azure: Emulated, completed: Completed) -> None:
    request, states, calls = completed
    assert calls == CALLS_OF_A_CREATE
    assert states[-5:] == ["Preparing", "Queued", "Running", "Finalizing", "Completed"]
    for node in (0, 1):
        steps = [f"[{node}/{node}] rank {node} step {step}" for step in range(3)]
        file = f"user_logs/std_log_process_0{node}.txt"
        begins = [f"[{node}/{node}] rank {node} begins at 0", f"[{node}/{node}] one.txt: from the datastore"]
        assert lines(azure, request.name, file) == [*begins, *steps]
    assert azure.blob(f"cloudtrain/runs/{request.spec['run_id']}/model/model-1.txt") == b"made by 1"
    assert azure.blob(f"cloudtrain/runs/{request.spec['run_id']}/checkpoints/rank-0.txt") == b"3"


def test_the_vendors_client_afterwards(
    azure: Emulated, completed: Completed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its methods show, change and fetch."""
    from azure.ai.ml.constants._common import STORAGE_ACCOUNT_URLS

    ml = client()
    assert completed.request.name in [job.name for job in ml.jobs.list()]
    job = ml.jobs.get(completed.request.name)
    assert job.status == "Completed"
    assert job.outputs.default.path == f"azureml://datastores/workspaceartifactstore/ExperimentRun/dcid.{job.name}"

    job.tags["later"] = "x"
    ml.jobs.create_or_update(job)
    assert "Runs_Modify" in [call.operation for call in azure.plane.calls[-3:]]
    assert ml.jobs.get(job.name).tags["later"] == "x"

    monkeypatch.setitem(STORAGE_ACCOUNT_URLS, "AzureBlob", os.environ["CLOUDTRAIN_ENDPOINT_BLOB"])
    ml.jobs.download(job.name, download_path=tmp_path)
    log = (tmp_path / "artifacts/user_logs/std_log_process_01.txt").read_text()
    assert "[1/1] rank 1 step 2\n" in log


def test_the_way_out(azure: Emulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `render -o cli` writes, sent as its command sends it: the client uploads the spec and a channel itself."""
    from azure.ai.ml.constants._common import STORAGE_ACCOUNT_URLS

    project, out = tmp_path / "project", tmp_path / "out"
    (project / "data").mkdir(parents=True)
    (project / "data/three.txt").write_text("from this folder")
    (project / "train.py").write_text(SCRIPT)
    job = project / "job.yaml"
    job.write_text("name: exported\nentry: train.py\nargs: ['2', '0']\ndata: {train: {uri: {local: data}}}\n")
    done = cloudtrain("render", job, "--provider", "azureml", "-o", "cli", "--out", out)
    assert done.returncode == 0, done.stderr
    shown = json.loads(cloudtrain("render", job, "--provider", "azureml").stdout)

    monkeypatch.setitem(STORAGE_ACCOUNT_URLS, "AzureBlob", os.environ["CLOUDTRAIN_ENDPOINT_BLOB"])
    client().jobs.create_or_update(vendor().load_job(out / "job.yml"))
    assert azure.until_over(shown["name"])[-1] == "Completed"
    assert lines(azure, shown["name"], "user_logs/std_log.txt") == [
        "[0/0] rank 0 begins at 0",
        "[0/0] three.txt: from this folder",
        *(f"[0/0] rank 0 step {step}" for step in range(2)),
    ]
    sent = azure.plane.forms[-1]
    shown.pop("$schema")
    assert sent | {"inputs": {}} == shown | {"inputs": {}}
    assert {name: given["mode"] for name, given in sent["inputs"].items()} == {
        name: given["mode"] for name, given in shown["inputs"].items()
    }


def test_cancelled_while_it_runs(azure: Emulated, tmp_path: Path) -> None:
    script = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("told to end", flush=True), sys.exit(0)))
data = pathlib.Path(os.environ["CLOUDTRAIN_DATA_TRAIN"])
data.joinpath("mine.txt").write_text("on the node's own disk")
print("ready", sorted(path.name for path in data.iterdir()), flush=True)
time.sleep(600)
"""
    azure.put("copied/two.txt", b"2")
    data = "data: {train: {uri: 'azureml://datastores/workspaceblobstore/paths/copied/', mode: download}}\n"
    request = sent(azure, tmp_path / "job", script=script, job=f"name: small\n{data}")
    azure.until_printed(request.name, "user_logs/std_log.txt", "ready ['mine.txt', 'two.txt']")
    client().jobs.begin_cancel(request.name).result()
    states = azure.until_over(request.name)
    assert states[-2:] in (["CancelRequested", "Canceled"], ["Canceled"])
    assert lines(azure, request.name, "user_logs/std_log.txt")[-1] == "[0/0] told to end"
    assert azure.details(request.name).get("error") is None
    assert azure.blobs("copied") == ["copied/two.txt"]


def test_secrets(azure: Emulated, tmp_path: Path) -> None:
    """With an identity a job reads the vault, and without one it does not."""
    vault = os.environ["CLOUDTRAIN_ENDPOINT_VAULT"]
    put = requests.put(f"{vault}/secrets/wandb", params={"api-version": "7.4"}, json={"value": "s3cr3t"}, timeout=30)
    assert put.status_code == 200
    assert requests.get(f"{vault}/secrets/wandb", timeout=30).status_code == 401
    secret = "name: small\nenvironment: {secrets: {TOKEN: {azureml: 'https://keys.vault.azure.net/secrets/wandb'}}}\n"
    identity = "overrides: {azureml: {identity: {type: managed}}}\n"
    script = "import os\nprint('the secret has', len(os.environ['TOKEN']), 'characters', flush=True)"
    reads = sent(azure, tmp_path / "reads", script=script, job=secret + identity)
    does_not = sent(azure, tmp_path / "not", script=script, job=secret)
    assert azure.until_over(reads.name)[-1] == "Completed"
    assert lines(azure, reads.name, "user_logs/std_log.txt") == ["[0/0] the secret has 6 characters"]
    assert azure.until_over(does_not.name)[-1] == "Failed"
    assert "secret TOKEN" in azure.log(does_not.name, "user_logs/std_log.txt")


def test_failed_and_streamed(azure: Emulated, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = sent(azure, tmp_path / "job", script="import sys\nprint('no such column', flush=True)\nsys.exit(3)")
    with pytest.raises(Exception, match="exited with status code 3"):
        client().jobs.stream(request.name)
    assert azure.job(request.name)["properties"]["status"] == "Failed"
    error = azure.details(request.name)["error"]["error"]
    assert error["code"] == "UserError"
    assert error["message"].startswith("Execution failed. User process 'python3' exited with status code 3.")
    assert "no such column" in error["message"]
    assert "no such column" in capsys.readouterr().out


def test_evicted_and_started_anew(azure: Emulated, tmp_path: Path) -> None:
    request = sent(azure, tmp_path / "job", steps=18, pause=0.2, job="name: evicted\nspot: {enabled: true}\n")
    states = azure.until_over(request.name)
    assert states[-5:] == ["Running", "Queued", "Running", "Finalizing", "Completed"]
    first = [line for line in lines(azure, request.name, "user_logs/std_log.txt") if " step " in line]
    second = lines(azure, request.name, "user_logs/retry_001/std_log.txt")
    # How far the first start came is a matter of this machine's speed; a step may be saved and not yet printed.
    done = len(first) + (second[0] == f"[0/0] rank 0 begins at {len(first) + 1}")
    assert second == [
        f"[0/0] rank 0 begins at {done}",
        *(f"[0/0] rank 0 step {step}" for step in range(done, 18)),
    ]


def test_three_at_once_that_end_badly(azure: Emulated, tmp_path: Path) -> None:
    long = {"steps": 1000, "pause": 0.5}
    taken = sent(azure, tmp_path / "taken", **long, job="name: taken\nspot: {enabled: true}\n")
    loses = sent(azure, tmp_path / "loses", **long, nodes=2, job="name: loses\n")
    limited = sent(azure, tmp_path / "limited", **long, job="name: limited\nlimits: {runtime: 1s}\n")
    ends = {}
    for request in (taken, loses, limited):
        azure.until_over(request.name)
        details = azure.details(request.name)
        ends[request.name.partition("-")[0]] = (details["status"], details["error"]["error"]["message"])
    assert {name: state for name, (state, _) in ends.items()} == {
        "taken": "Failed",
        "loses": "Failed",
        "limited": "Canceled",
    }
    assert "Nodes of this job got pre-empted" in ends["taken"][1]
    assert "node 1 of the job was lost" in ends["loses"][1]
    assert "time limit" in ends["limited"][1]
