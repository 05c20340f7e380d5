"""``cloudtrain render`` costs little more than importing what it is made of: click, pydantic and yaml.

The base imports pydantic as ``import pydantic`` does, which loads neither models nor fields: these alone, for a model
of one field, make it 1.9 times as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measuring import Command, Row, in_turns, wall
from benchmarks.subjects import cloudtrain, python

ROUNDS = 25
PROVIDERS = ("sagemaker", "vertex", "azureml")
BASE = "import click, pydantic, yaml"

JOB = """\
name: bench
entry: train.py
args: {epochs: 5, lr: 0.01}
resources: {nodes: 2, accelerator: A100-80GB, accelerators_per_node: 8}
environment: {env: {LEVEL: debug}}
data:
  train: {uri: {sagemaker: s3://bench/d/, vertex: gs://bench/d/, azureml: azureml://datastores/bench/paths/d/}}
spot: {enabled: true, max_wait: 6h}
retries: {failure: 2}
limits: {runtime: 4h}
"""


def rows() -> Iterator[Row]:
    """A row per provider, and what a render is made of for comparison: reading the job, and looking at its code."""
    with TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        (folder / "job.yaml").write_text(JOB, encoding="utf-8")
        (folder / "train.py").write_text("print()\n", encoding="utf-8")
        (folder / ".gitignore").write_text("data/\n*.pt\n", encoding="utf-8")
        subjects = {"imports": wall(python(BASE))}
        for provider in PROVIDERS:
            subjects[provider] = wall(_command(folder, "render", "job.yaml", "--provider", provider))
        for verb in ("validate", "bundle"):
            subjects[verb] = wall(_command(folder, verb, "job.yaml"))
        measured = in_turns(subjects, ROUNDS)
    for provider in PROVIDERS:
        what = f"`cloudtrain render --provider {provider}` / `python -c '{BASE}'`"
        yield Row.of(f"render-{provider}", what, measured, provider, "imports", unit="s", bound=1.8)
    for verb in ("validate", "bundle"):
        yield Row.of(verb, f"`cloudtrain {verb}` / the same", measured, verb, "imports", unit="s")


def _command(folder: Path, *args: str) -> Command:
    """With a home of its own, so that no digests of temporary folders stay behind."""
    command = cloudtrain(*args, cwd=folder)
    return replace(command, env={**(command.env or {}), "CLOUDTRAIN_HOME": str(folder / ".cloudtrain")})
