"""A broken environment or spec: exit 125 and one line that says what is wrong, before anything is started."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from cloudtrain import shipped
from tests.entrypoints.launch.nodes import Job


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"CLOUDTRAIN_SPEC": None}, "CLOUDTRAIN_SPEC is not set"),
        ({"CLOUDTRAIN_SPEC": ""}, "CLOUDTRAIN_SPEC is not set"),
        ({"CLOUDTRAIN_SPEC": "/no/spec.json"}, "cannot read the launch spec /no/spec.json: [Errno 2] No such file"),
        (
            {"CLOUDTRAIN_PROVIDER": None},
            "CLOUDTRAIN_PROVIDER is ''; this launcher knows azureml, local, sagemaker, vertex",
        ),
        (
            {"CLOUDTRAIN_PROVIDER": "mars", "CLOUDTRAIN_HOSTS": None},
            "CLOUDTRAIN_PROVIDER is 'mars'; this launcher knows azureml, local, sagemaker, vertex",
        ),
        ({"CLOUDTRAIN_HOSTS": None}, "CLOUDTRAIN_HOSTS is not set"),
        ({"CLOUDTRAIN_HOSTS": "a,,b"}, "CLOUDTRAIN_HOSTS has an empty name: 'a,,b'"),
        ({"CLOUDTRAIN_NODE_RANK": None}, "CLOUDTRAIN_NODE_RANK is not set"),
        ({"CLOUDTRAIN_NODE_RANK": "2"}, "CLOUDTRAIN_NODE_RANK is 2, but CLOUDTRAIN_HOSTS names 2 nodes"),
        ({"CLOUDTRAIN_NODE_RANK": "-1"}, "CLOUDTRAIN_NODE_RANK is -1, but CLOUDTRAIN_HOSTS names 2 nodes"),
        ({"CLOUDTRAIN_NODE_RANK": "one"}, "CLOUDTRAIN_NODE_RANK is not a whole number: 'one'"),
        ({"CLOUDTRAIN_PORT": None}, "CLOUDTRAIN_PORT is not set"),
        ({"CLOUDTRAIN_PORT": "http"}, "CLOUDTRAIN_PORT is not a whole number: 'http'"),
        ({"CLOUDTRAIN_PORT": "70000"}, "CLOUDTRAIN_PORT is 70000, a port is from 1 to 65535"),
        ({"CLOUDTRAIN_LISTEN_FD": "x"}, "CLOUDTRAIN_LISTEN_FD is not a whole number: 'x'"),
    ],
)
def test_a_broken_environment(job: Job, changed: dict[str, str | None], message: str) -> None:
    job.write("print('never')\n")
    node = job.start(0, changed=changed)
    assert (node.end(), node.out) == (125, "")
    assert node.err.startswith(f"cloudtrain launch: {message}")
    assert len(node.err.splitlines()) == 1


def test_a_number_of_cores_that_is_none(job: Job) -> None:
    job.write("print('never')\n")
    node = job.start(0, changed={"CLOUDTRAIN_NODE_CORES": "many"})
    assert node.end() == 125
    assert "node 0: CLOUDTRAIN_NODE_CORES is not a whole number: 'many'" in node.out


SPEC = {"version": 1, "run_id": "r1", "kind": "entry", "target": "hello.py", "processes_per_node": 1}


def _without(name: str) -> dict[str, Any]:
    return {key: value for key, value in SPEC.items() if key != name}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Expecting value: line 1 column 1 (char 0)"),
        ("{", "Expecting property name enclosed in double quotes"),
        ("[" * 200_000, "maximum recursion depth exceeded"),
        ("[]", "a launch spec is a JSON object, not list"),
        (json.dumps({**SPEC, "version": 2}), "launch spec version 2, this launcher knows version 1"),
        (json.dumps(_without("version")), "launch spec version None, this launcher knows version 1"),
        (json.dumps({**SPEC, "colour": 1, "argv": []}), "unknown fields argv, colour"),
        (json.dumps(_without("run_id")), "missing fields run_id"),
        (json.dumps(_without("target")), "missing fields target"),
        (json.dumps({**SPEC, "kind": "exe"}), "kind must be one of entry, module, task, not 'exe'"),
        (json.dumps({**SPEC, "args": "--lr 1"}), "args must be a list of texts, not '--lr 1'"),
        (json.dumps({**SPEC, "args": ["--lr", 1]}), "args must be a list of texts, not ['--lr', 1]"),
        (json.dumps({**SPEC, "env": {"A": 1}}), "env must be an object of texts, not {'A': 1}"),
        (json.dumps({**SPEC, "processes_per_node": 0}), "processes_per_node must be a whole number from 1, not 0"),
        (json.dumps({**SPEC, "processes_per_node": "2"}), "processes_per_node must be a whole number from 1, not '2'"),
        (
            json.dumps({**SPEC, "processes_per_node": True}),
            "processes_per_node must be a whole number from 1, not True",
        ),
        (json.dumps({**SPEC, "grace": -1}), "grace must be a number from 0, not -1"),
        (json.dumps({**SPEC, "start_timeout": float("inf")}), "start_timeout must be a number from 0, not inf"),
        (json.dumps({**SPEC, "start_timeout": None}), "start_timeout must be a number from 0, not None"),
    ],
)
def test_a_broken_spec(job: Job, text: str, message: str) -> None:
    job.project.write("spec.json", text)
    node = job.start(0)
    assert (node.end(), node.out) == (125, "")
    assert node.err.startswith("cloudtrain launch: ") and message in node.err
    assert str(job.folder / "spec.json") in node.err
    assert len(node.err.splitlines()) == 1


@pytest.mark.parametrize("path", sorted(shipped.entrypoints().rglob("*.py")), ids=lambda path: path.stem)
def test_what_travels_with_a_job_is_python_3_9(path: Path) -> None:
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
