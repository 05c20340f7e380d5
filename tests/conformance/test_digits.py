"""The digits job from submit to download, on every backend: the same model, the same states, all ranks' lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conformance.backend import Backend, Digits, digits

RANKS = range(4)


class Ended(NamedTuple):
    """A run that was followed to its end, and the project it was submitted from."""

    told: Mapping[str, Any]
    project: Path


@pytest.fixture(scope="package")
def ended(backend: Backend) -> Ended:
    project = digits(backend.folder)
    return Ended(backend.follow(project / "job.yaml"), project)


def test_the_states_are_the_same_everywhere(ended: Ended) -> None:
    states = ended.told["states"]
    assert states[states.index("PROVISIONING") :] == ["PROVISIONING", "RUNNING", "SUCCEEDED"]
    assert states[: states.index("PROVISIONING")] in ([], ["PENDING"])  # whether somebody looked soon enough


def test_every_rank_is_heard_once(ended: Ended) -> None:
    heard = [(node, rank) for node, rank, text in ended.told["lines"] if text.endswith("of the digits job")]
    assert sorted(heard) == [(0, 0), (0, 1), (1, 2), (1, 3)]
    epochs = [text.split()[1] for _, rank, text in ended.told["lines"] if rank == 0 and text.startswith("epoch ")]
    assert epochs == ["1/4", "2/4", "3/4", "4/4"]


def test_the_model_is_that_of_a_plain_run(ended: Ended, backend: Backend, reference: Digits, folder: Path) -> None:
    run_id = ended.told["run_id"]
    done = backend.cloudtrain("download", run_id, "--to", folder / "got", "--json", cwd=ended.project)
    assert done.code == 0, done.err
    assert Digits.of(folder / "got/model") == reference
    assert reference.accuracy >= 0.97
    metrics = {rank: (folder / f"got/metrics/rank-{rank}.jsonl").read_text() for rank in RANKS}
    assert all(json.loads(line)["rank"] == rank for rank, text in metrics.items() for line in text.splitlines())
    assert all(metrics.values())


def test_it_is_known_by_its_id_and_by_the_providers_name(ended: Ended, backend: Backend) -> None:
    run_id = ended.told["run_id"]
    by_id = backend.cloudtrain("status", run_id, "--json", cwd=ended.project)
    named = f"{backend.provider}:{by_id.json['native_id']}"
    assert backend.cloudtrain("status", named, "--json", cwd=ended.project).json == by_id.json
    assert by_id.json["state"] == "SUCCEEDED"
    assert by_id.json["exit_code"] == by_id.code == 0
    listed = backend.cloudtrain("runs", "--json", cwd=ended.project)
    assert [run["state"] for run in listed.json if run["run_id"] == run_id] == ["SUCCEEDED"]


def test_another_machine_finds_it(ended: Ended, backend: Backend, folder: Path) -> None:
    """By the provider's name, with a ledger that has never heard of it."""
    if backend.provider == "local":
        pytest.skip("a local run is on one machine")
    there = Backend(backend.provider, backend.emulator, folder)
    native = ended.told["status"]["native_id"]
    status = there.cloudtrain("status", f"{backend.provider}:{native}", "--json")
    assert status.code == 0, status.err
    assert status.json["run_id"] == ended.told["run_id"]
    logs = there.cloudtrain("logs", f"{backend.provider}:{native}", "--rank", "3")
    assert logs.out.splitlines() == ["[1/3] rank 3 of the digits job"]


def test_the_log_can_be_read_again(ended: Ended, backend: Backend) -> None:
    logs = backend.cloudtrain("logs", ended.told["run_id"], "--rank", "0,2", cwd=ended.project)
    assert logs.code == 0, logs.err
    told = [f"[{node}/{rank}] {text}" for node, rank, text in ended.told["lines"] if rank in (0, 2)]
    assert [line for line in logs.out.splitlines() if line.startswith("[0/0]")] == [
        line for line in told if line.startswith("[0/0]")
    ]
    assert sorted(logs.out.splitlines()) == sorted(told)


def test_ranks_and_nodes_that_there_are_not(ended: Ended, backend: Backend) -> None:
    for option, said in (
        ("--rank", "has no rank 9; the ranks are 0 to 3"),
        ("--node", "no node 9; the nodes are 0 to 1"),
    ):
        done = backend.cloudtrain("logs", ended.told["run_id"], option, "9", cwd=ended.project)
        assert (done.code, done.out) == (2, "")
        assert said in done.err


def test_what_was_received_is_what_render_shows(ended: Ended, backend: Backend) -> None:
    """Azure ML's form is turned into the wire's by the vendor's client, and back by the emulator."""
    if backend.provider == "local":
        pytest.skip("nothing is sent to this machine")
    shown = backend.cloudtrain("render", "job.yaml", "--provider", backend.provider, cwd=ended.project).json
    shown.pop("$schema", None)  # names the form; it is no part of the job
    received = [form for form in _received(backend) if _name(form) == _name(shown)]
    assert [json.dumps(form, sort_keys=True) for form in received] == [json.dumps(shown, sort_keys=True)]


def _received(backend: Backend) -> list[dict[str, Any]]:
    plane: Any = backend.emulator.plane(backend.provider)
    forms: list[dict[str, Any]] = plane.forms if backend.provider == "azureml" else plane.requests
    return forms


def _name(request: Mapping[str, Any]) -> str:
    return str(request.get("TrainingJobName") or request.get("displayName") or request.get("name"))
