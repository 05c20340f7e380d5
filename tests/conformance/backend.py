"""A provider as its user has it: commands in a shell that knows nothing but the provider's variables."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cloudtrain.emulator import Emulator

CLOUDS = ("sagemaker", "vertex", "azureml")
CLOUDTRAIN = str(Path(sys.executable).with_name("cloudtrain"))
LIMIT_SECONDS = 400
"""Bound on one command; nothing is asserted about how long it really takes."""
_EPOCHS = 4

# Follows as `submit --follow` does, and writes down what an observer is told.
_FOLLOW = """
import json, sys
import cloudtrain as ct
from cloudtrain.record.observer import Observer

class Notes(Observer):
    states, lines = [], []
    def state(self, state): self.states.append(state.value)
    def line(self, node, rank, text): self.lines.append([node, rank, text])

run = ct.submit(sys.argv[1], sys.argv[2], observer=Notes())
status = run.follow(Notes())
print(json.dumps({"run_id": run.run_id, "status": status.as_dict(), "states": Notes.states, "lines": Notes.lines}))
"""


@dataclass
class Result:
    """One ended command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.out, self.err
        return json.loads(self.out)


class Going:
    """A command that goes on; its output is in files, so that it never waits for a reader."""

    def __init__(self, command: list[str], cwd: Path, env: Mapping[str, str]) -> None:
        self._folder = Path(tempfile.mkdtemp(dir=cwd.parent, prefix="command-"))
        with (self._folder / "out").open("w") as out, (self._folder / "err").open("w") as err:
            self._process = subprocess.Popen(command, cwd=cwd, env=dict(env), stdout=out, stderr=err)

    @property
    def out(self) -> str:
        """Standard output so far."""
        return (self._folder / "out").read_text()

    @property
    def err(self) -> str:
        return (self._folder / "err").read_text()

    def wait_for(self, found: Callable[[], object], what: str) -> None:
        """Until ``found`` is true; the command must not end before."""
        end = time.monotonic() + LIMIT_SECONDS
        while not found():
            over = self._process.poll() is not None and not found()
            assert not over, f"ended before {what}: {self.out}{self.err}"
            assert time.monotonic() < end, f"no {what}: {self.out}{self.err}"
            time.sleep(0.02)

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def ended(self) -> Result:
        code = self._process.wait(LIMIT_SECONDS)
        return Result(code, self.out, self.err)

    def close(self) -> None:
        """End it, if a test has not."""
        self._process.kill()
        self._process.wait()


@dataclass
class Digits:
    """What the digits job has come to."""

    weights: str
    """sha256 of the model's file."""
    accuracy: float

    @classmethod
    def of(cls, model: Path) -> Digits:
        said = json.loads((model / "model.json").read_text())
        return cls(hashlib.sha256((model / "model.pt").read_bytes()).hexdigest(), _accuracy(said))

    @classmethod
    def run_here(cls, folder: Path) -> Digits:
        project = digits(folder)
        ended = _command(["run", "job.yaml", "--plain"], project, dict(os.environ))
        assert ended.code == 0, ended.err
        return cls.of(project / ".cloudtrain/runs/latest/model")


@dataclass
class Backend:
    """A provider, with a home of its own for the ledger."""

    provider: str
    emulator: Emulator
    folder: Path
    env: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.env = {**self.emulator.environment(), "CLOUDTRAIN_HOME": str(self.folder / "home")}

    def cloudtrain(self, *words: str | Path, cwd: Path | None = None) -> Result:
        return _command(list(map(str, words)), cwd or self.folder, self.env)

    def begin(self, *words: str | Path, cwd: Path) -> Going:
        """A command that is not waited for."""
        return Going([CLOUDTRAIN, *map(str, words)], cwd, self.env)

    def follow(self, job: Path) -> Mapping[str, Any]:
        """Submit from Python, and all that was told until the end."""
        ended = _python(_FOLLOW, job.name, self.provider, cwd=job.parent, env=self.env)
        assert ended.code == 0, ended.err
        told: dict[str, Any] = ended.json
        return told


def digits(folder: Path) -> Path:
    """The template, shortened, and with a line of every rank."""
    assert _command(["init", "--template", "digits", "digits"], folder, dict(os.environ)).code == 0
    project = folder / "digits"
    prepared = subprocess.run([sys.executable, "prepare.py"], cwd=project, capture_output=True, text=True, check=False)
    assert prepared.returncode == 0, prepared.stderr
    job = project / "job.yaml"
    job.write_text(job.read_text().replace("epochs: 15", f"epochs: {_EPOCHS}"))
    tasks = project / "tasks.py"
    tasks.write_text(tasks.read_text() + "\n\nimport os\nprint(f\"rank {os.environ['RANK']} of the digits job\")\n")
    return project


def job_file(folder: Path, script: str, **fields: Any) -> Path:
    """A job of one small script."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.py").write_text(script)
    job = folder / "job.yaml"
    job.write_text(json.dumps({"name": "small", "entry": "train.py", "resources": {"nodes": 2}, **fields}))
    return job


def _accuracy(model: Mapping[str, Any]) -> float:
    return float(model["test_accuracy"])


def _command(words: list[str], cwd: Path, env: Mapping[str, str]) -> Result:
    return _ended([CLOUDTRAIN, *words], cwd, env)


def _python(script: str, *words: str, cwd: Path, env: Mapping[str, str]) -> Result:
    return _ended([sys.executable, "-c", script, *words], cwd, env)


def _ended(command: list[str], cwd: Path, env: Mapping[str, str]) -> Result:
    done = subprocess.run(
        command, cwd=cwd, env=dict(env), capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )
    return Result(done.returncode, done.stdout, done.stderr)
