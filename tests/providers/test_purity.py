"""Rendering decides and does nothing: equal bytes in any order, process, time and place, without network or home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cloudtrain.providers import registry
from tests.providers import golden
from tests.providers.contexts import PROVIDERS, context, job_of

# What a program runs before it renders: no socket may be made, and it is the year 2100.
SEALED = """
import datetime, os, socket, sys, time
def refuse(*_, **__):
    raise AssertionError("a socket was made")
socket.socket.__init__ = refuse
socket.getaddrinfo = refuse
time.time = lambda: 4102444800.0
time.time_ns = lambda: 4102444800 * 10**9
from cloudtrain.cli import main
main()
"""
WRAP = "import runpy, sys; sys.argv[0] = 'cloudtrain'; exec(compile(sys.argv.pop(1), 'sealed', 'exec'))"

CASES = [case for case in golden.cases() if "request" in json.loads(golden.made(*case))]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for path in (golden.FOLDER / "jobs").glob("*.yaml"):
        (folder / path.name).write_bytes(path.read_bytes())
    for name in ("train.py", "pretrain.py", "tasks.py", "pkg/train.py", "requirements.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("# nothing\n")
    return folder


def _rendered(project: Path, name: str, provider: str, *, sealed: bool, **env: str) -> bytes:
    command = ["render", f"{name}.yaml", "--provider", provider]
    start = [sys.executable, "-c", WRAP, SEALED] if sealed else [sys.executable, "-m", "cloudtrain"]
    result = subprocess.run(
        [*start, *command], cwd=project, capture_output=True, check=False, timeout=60, env={**os.environ, **env}
    )
    assert result.returncode == 0, result.stderr.decode()
    return result.stdout


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", ["spot-checkpoints", "overrides"])
def test_two_processes_one_of_them_sealed_print_equal_bytes(project: Path, name: str, provider: str) -> None:
    before = (project / f"{name}.yaml").read_bytes()
    nowhere = {"HOME": "/proc/nowhere", "CLOUDTRAIN_HOME": "/proc/nowhere", "PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo"}
    first = _rendered(project, name, provider, sealed=False, PYTHONHASHSEED="2")
    second = _rendered(project, name, provider, sealed=True, **nowhere)
    assert first == second
    assert (project / f"{name}.yaml").read_bytes() == before


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_order_in_which_jobs_are_translated_makes_no_difference(provider: str) -> None:
    names = [name for name, of in CASES if of == provider]
    forth = {name: golden.made(name, provider) for name in names}
    back = {name: golden.made(name, provider) for name in reversed(names)}
    assert forth == back


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_a_caller_does_to_a_request_reaches_neither_the_job_nor_the_next_request(provider: str) -> None:
    job = job_of((golden.FOLDER / "jobs" / "overrides.yaml").read_text())
    before = job.dump()
    first = registry.translate(job, context(job, provider))
    kept = json.dumps(first)
    _spoil(first.native)
    _spoil(first.spec)
    assert job.dump() == before
    assert json.dumps(registry.translate(job, context(job, provider))) == kept


def _spoil(value: object) -> None:
    """Change every mapping and list in place."""
    for item in list(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()):
        _spoil(item)
    if isinstance(value, dict):
        value["spoilt"] = 1
    elif isinstance(value, list):
        value.append("spoilt")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_render_loads_no_vendor_package(project: Path, provider: str) -> None:
    program = """
import sys
before = set(sys.modules)
sys.argv = ["cloudtrain", "render", "gpu-2x8-a100-80gb.yaml", "--provider", sys.argv[1]]
from cloudtrain.cli import main
try:
    main()
finally:
    sys.stderr.write("loaded " + " ".join(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
"""
    result = subprocess.run(
        [sys.executable, "-c", program, provider], cwd=project, capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(result.stderr.rpartition("loaded ")[2].split())
    assert "cloudtrain" in loaded
    assert not loaded & {"azure", "boto3", "botocore", "google", "sagemaker", "torch", "numpy", "marshmallow"}
