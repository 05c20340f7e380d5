"""Starts the ranks of a job as real processes, as a launcher would, but in a fraction of a second."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ENTRYPOINTS = HERE.parents[2] / "entrypoints"
TRAIN = HERE / "scripts" / "train.py"
# What may be set where the tests run, and would reach the ranks.
FOREIGN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_", "CLOUDTRAIN_", "TORCHELASTIC_", "PET_")


@dataclass(frozen=True)
class Ended:
    """How a job ended: exit code and output of each rank."""

    codes: list[int]
    outputs: list[str]

    @property
    def output(self) -> str:
        return "\n".join(self.outputs)

    def succeeded(self) -> Ended:
        assert set(self.codes) == {0}, f"{self.codes}\n{self.output}"
        return self


class Ranks:
    """A running fork server."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, HERE / "fork_server.py"],
            env={**clean_environment(), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ENTRYPOINTS)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self,
        script: Path,
        *argv: object,
        world: int,
        folder: Path,
        env: Mapping[str, str] | None = None,
        without: Sequence[str] = (),
    ) -> Ended:
        """Run ``script`` on ``world`` ranks with all of a job's folders under ``folder``, and wait for them."""
        logs = folder / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        for old in logs.iterdir():
            old.unlink()
        port = _free_port()
        envs = [{**worker_environment(rank, world, port, folder), **(env or {})} for rank in range(world)]
        job = {
            "script": str(script),
            "argv": [str(argument) for argument in argv],
            "cwd": str(folder),
            "env": [{name: value for name, value in each.items() if name not in without} for each in envs],
            "logs": str(logs),
        }
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(job) + "\n")
        self._server.stdin.flush()
        ended = self._answer()
        assert ended["left"] == [], "processes were left behind"
        return Ended(ended["codes"], [(logs / f"rank-{rank}.txt").read_text() for rank in range(world)])

    def code(self, text: str, *argv: object, world: int, folder: Path, **options: Any) -> Ended:
        """Run the Python program ``text``."""
        folder.mkdir(parents=True, exist_ok=True)
        script = folder / "script.py"
        script.write_text(text)
        return self.run(script, *argv, world=world, folder=folder, **options)

    def close(self) -> None:
        assert self._server.stdin is not None and self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()

    def _answer(self) -> Any:
        assert self._server.stdout is not None
        return json.loads(self._server.stdout.readline())


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}


def worker_environment(rank: int, world: int, port: int, folder: Path) -> dict[str, str]:
    """What a launcher gives to rank ``rank`` of one node."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world),
        "LOCAL_WORLD_SIZE": str(world),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "GROUP_RANK": "0",
        "GLOO_SOCKET_IFNAME": "lo",
        **job_environment(folder),
    }


def job_environment(folder: Path) -> dict[str, str]:
    names = {"CHECKPOINT_DIR": "checkpoints", "OUTPUT_DIR": "output", "MODEL_DIR": "model", "METRICS_DIR": "metrics"}
    return {f"CLOUDTRAIN_{name}": str(folder / place) for name, place in names.items()}


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
