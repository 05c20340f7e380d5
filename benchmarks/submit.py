"""``cloudtrain submit`` costs little more than the calls it makes, and less than the vendors' own SDKs.

All send to the same emulated clouds, slowed down so far that no job begins to run. Every round is another job of the
same code, which is uploaded before.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from subprocess import run as run_process
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.measuring import Command, Row, Subject, in_turns, run
from benchmarks.subjects import cloudtrain
from cloudtrain.emulator import Emulator

ROUNDS = 7
_SLOW = 0.01
"""A second of the service's takes 100 here: jobs stay where they begin."""
_SCRIPTS = Path(__file__).with_name("scripts")
_JOB = "name: bench\nentry: train.py\ncode: code\nresources: {{nodes: 2}}\nargs: {{round: {number}}}\n"


def rows() -> Iterator[Row]:
    """SageMaker against boto3 alone, then each cloud against its vendor's SDK."""
    with TemporaryDirectory(prefix="bench-") as name, Emulator(speed=_SLOW) as emulator:
        bench = _Bench(Path(name), emulator)
        subjects = {
            "boto3": bench.script("sagemaker", "submit_boto3.py"),
            "sagemaker": bench.ours("sagemaker"),
            "sagemaker-core": bench.script("sagemaker", "submit_sagemaker_core.py", lay=True),
            "vertex": bench.ours("vertex"),
            "aiplatform": bench.script("vertex", "submit_aiplatform.py"),
            "azureml": bench.ours("azureml"),
            "azure-ai-ml": bench.script("azureml", "submit_azure_ai_ml.py"),
        }
        measured = in_turns(subjects, ROUNDS)
    yield _row(measured, "sagemaker", "boto3", "boto3 alone, the same calls", 1.3)
    yield _row(measured, "sagemaker", "sagemaker-core", "sagemaker-core's TrainingJob.create", 1.0)
    yield _row(measured, "vertex", "aiplatform", "aiplatform's CustomJob.submit", 1.0)
    yield _row(measured, "azureml", "azure-ai-ml", "azure-ai-ml's create_or_update", 1.0)


def _row(measured: Mapping[str, list[float]], ours: str, base: str, words: str, bound: float) -> Row:
    what = f"`cloudtrain submit --provider {ours}` / {words}"
    return Row.of(f"submit-{ours}-{base}", what, measured, ours, base, unit="s", bound=bound)


class _Bench:
    """Jobs of one code, each with a number of its own."""

    def __init__(self, folder: Path, emulator: Emulator) -> None:
        self._folder = folder
        self._numbers = count(1)
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self._env = {**emulator.environment(kept), "CLOUDTRAIN_HOME": str(folder / "home")}
        (folder / "code").mkdir()
        (folder / "code/train.py").write_text("print()\n", encoding="utf-8")
        for provider in emulator.providers:
            self.ours(provider)()  # uploads the code

    def ours(self, provider: str) -> Subject:
        """The whole command."""

        def once() -> float:
            job = self._job()
            return self._run(*cloudtrain("submit", job.name, "--provider", provider, "--quiet").argv)

        return once

    def script(self, provider: str, name: str, *, lay: bool = False) -> Subject:
        """A program that finds in a file what it is to send; that is written before the clock starts. ``lay``: so
        is spec.json, which the SDK has no part in."""

        def once() -> float:
            job = self._job()
            given = job.with_suffix(".json")
            shown = self._cloudtrain("submit", job.name, "--provider", provider, "--dry-run", "--json")
            given.write_text(json.dumps(_GIVEN[provider](self, job, json.loads(shown))), encoding="utf-8")
            if lay:
                self._lay_spec(json.loads(given.read_text(encoding="utf-8")))
            return self._run(sys.executable, str(_SCRIPTS / name), given.name)

        return once

    def _lay_spec(self, given: Mapping[str, Any]) -> None:
        import boto3

        session = boto3.Session(self._env["AWS_ACCESS_KEY_ID"], self._env["AWS_SECRET_ACCESS_KEY"])
        s3 = session.client("s3", "us-east-1", endpoint_url=self._env["AWS_ENDPOINT_URL"])
        s3.put_object(Bucket=given["bucket"], Key=given["spec"], Body=b"{}")

    def export(self, job: Path, request: Mapping[str, Any]) -> Path:
        """The job as the vendor's own form, with the folder of its code beside it, as `render -o cli` writes it.

        But for the spec, of which it names the place in the request: the SDK would upload one that lies here, and no
        setting leads it to a storage account on this machine.
        """
        out = self._folder / f"{job.stem}-out"
        self._cloudtrain("render", job.name, "--provider", "azureml", "-o", "cli", "--out", out.name)
        form = out / "job.yml"
        form.write_text(json.dumps(request), encoding="utf-8")  # which is YAML, too
        return form

    def _job(self) -> Path:
        number = next(self._numbers)
        job = self._folder / f"job{number}.yaml"
        job.write_text(_JOB.format(number=number), encoding="utf-8")
        return job

    def _run(self, *argv: str) -> float:
        return run(Command(argv, self._folder, self._env)).wall

    def _cloudtrain(self, *words: str) -> str:
        command = cloudtrain(*words)
        done = run_process(command.argv, cwd=self._folder, env=self._env, capture_output=True, text=True, check=True)
        return done.stdout


def _for_sagemaker(_: _Bench, __: Path, shown: Mapping[str, Any]) -> dict[str, Any]:
    places = {ship["kind"]: ship["to"].removeprefix("s3://").partition("/") for ship in shown["ships"]}
    return {
        "request": shown["request"],
        "bucket": places["code"][0],
        "code": places["code"][2],
        "spec": f"{places['spec'][2]}spec.json",
        "content": {"version": 1},
    }


def _for_vertex(_: _Bench, __: Path, shown: Mapping[str, Any]) -> dict[str, Any]:
    spec = shown["request"]["jobSpec"]
    return {
        "name": shown["name"],
        "bucket": spec["baseOutputDirectory"]["outputUriPrefix"],
        "pools": [_pool(pool) for pool in spec["workerPoolSpecs"]],
        **shown["account"],
    }


def _pool(pool: Mapping[str, Any]) -> dict[str, Any]:
    """With the SDK's names."""
    container = pool["containerSpec"]
    return {
        "machine_spec": {"machine_type": pool["machineSpec"]["machineType"]},
        "replica_count": int(pool["replicaCount"]),
        "container_spec": {
            "image_uri": container["imageUri"], "command": container["command"], "env": container["env"],
        },
    }  # fmt: skip


def _for_azureml(bench: _Bench, job: Path, shown: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": shown["name"], "form": str(bench.export(job, shown["request"])), **shown["account"]}


_GIVEN: Mapping[str, Callable[[_Bench, Path, Mapping[str, Any]], dict[str, Any]]] = {
    "sagemaker": _for_sagemaker, "vertex": _for_vertex, "azureml": _for_azureml,
}  # fmt: skip
