"""A user's project in a temporary folder, and `cloudtrain run` on it as a user would: real commands and processes."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

CLOUDTRAIN = str(Path(sys.executable).with_name("cloudtrain"))
LIMIT_SECONDS = 400
"""Bound on one command; nothing is asserted about how long it really takes."""

HELLO = """
import os, sys
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank())])
dist.all_reduce(total)
print("sum", total.item(), "world", dist.get_world_size(), flush=True)
dist.destroy_process_group()
"""


@dataclass
class Result:
    """One ended command."""

    code: int
    out: str
    err: str
    folder: Path | None

    @property
    def report(self) -> dict[str, Any]:
        assert self.folder is not None, self.err
        data: dict[str, Any] = json.loads((self.folder / "report.json").read_text())
        return data

    def log(self, rank: int) -> bytes:
        assert self.folder is not None, self.err
        return (self.folder / "logs" / f"rank-{rank}.log").read_bytes()


class Running:
    """A command that goes on."""

    def __init__(self, process: subprocess.Popen[str], project: Project) -> None:
        self.process = process
        self.project = project

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        """Wait until something is so; fail if the command ends before."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while not condition():
            if self.process.poll() is not None:
                out, err = self.process.communicate()
                raise AssertionError(f"ended before {what}:\n{out}\n{err}")
            assert time.monotonic() < deadline, f"no {what} in {LIMIT_SECONDS} s"
            time.sleep(0.02)

    def wait_for_files(self, *names: str) -> None:
        """Wait until the scripts have written these files of the project's folder."""
        self.wait_for(lambda: all((self.project.folder / name).exists() for name in names), f"files {names}")

    def state(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads((self.project.latest / "run.json").read_text())
        return data

    def end(self) -> Result:
        out, err = self.process.communicate(timeout=LIMIT_SECONDS)
        return self.project.result(self.process.returncode, out, err)


@dataclass
class Project:
    """``folder`` holds the job file and the code; every process started from it carries ``mark`` in its environment."""

    folder: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def job(self, script: str = HELLO, *, nodes: int = 2, processes: int = 2, extra: str = "") -> None:
        """A job file for ``script``, which finds the project's folder in the variable PROJECT."""
        self.write("train.py", script)
        self.write(
            "job.yaml",
            f"name: test\nentry: train.py\nresources: {{nodes: {nodes}, processes_per_node: {processes}}}\n{extra}",
        )

    @property
    def latest(self) -> Path:
        return (self.folder / ".cloudtrain/runs/latest").resolve()

    def start(
        self,
        *options: str,
        env: Mapping[str, str] | None = None,
        job: str = "job.yaml",
        prefix: Sequence[str] = (),
    ) -> Running:
        if "netns" in options and not prefix:
            require(may_isolate(), "namespaces are not permitted here")
        process = subprocess.Popen(
            [*prefix, CLOUDTRAIN, "run", job, "--plain", *options],
            cwd=self.folder,
            env={**os.environ, "CT_TEST_MARK": self.mark, "PROJECT": str(self.folder), **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="surrogateescape",
            start_new_session=True,
        )
        return Running(process, self)

    def run(
        self,
        *options: str,
        env: Mapping[str, str] | None = None,
        job: str = "job.yaml",
        prefix: Sequence[str] = (),
    ) -> Result:
        return self.start(*options, env=env, job=job, prefix=prefix).end()

    def verb(self, *words: str, code: int = 0, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Another command of cloudtrain, in the project's folder or elsewhere, which must end with ``code``."""
        done = self.started(*words, cwd=cwd)
        out, err = done.communicate(timeout=LIMIT_SECONDS)
        assert done.returncode == code, f"{words}: {done.returncode}\n{out}\n{err}"
        return subprocess.CompletedProcess(words, done.returncode, out, err)

    def started(self, *words: str, cwd: Path | None = None) -> subprocess.Popen[str]:
        """The same, not waited for."""
        return subprocess.Popen(
            [CLOUDTRAIN, *words],
            cwd=cwd or self.folder,
            env={**os.environ, "CT_TEST_MARK": self.mark, "PROJECT": str(self.folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="surrogateescape",
            start_new_session=True,
        )

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        """Wait until something is so, whatever goes on meanwhile."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"no {what} in {LIMIT_SECONDS} s"
            time.sleep(0.02)

    def result(self, code: int, out: str, err: str) -> Result:
        folder = self.latest if (self.folder / ".cloudtrain/runs/latest").exists() else None
        return Result(code, out, err, folder)

    def left_over(self) -> list[str]:
        """Command lines of processes that still carry the mark; given two seconds to be reaped."""
        deadline = time.monotonic() + 2
        while (found := _marked(self.mark)) and time.monotonic() < deadline:
            time.sleep(0.02)
        return found

    def wait_until_none_is_left(self) -> None:
        """Wait for the end of processes whose command was killed: they stop by themselves, after their grace."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while _marked(self.mark):
            assert time.monotonic() < deadline, _marked(self.mark)
            time.sleep(0.05)

    def kill_left_over(self) -> None:
        for entry in _marked(self.mark):
            os.kill(int(entry.split()[0]), signal.SIGKILL)


def require(possible: bool, reason: str) -> None:
    """Skip what this machine does not permit; CI, which sets CT_REQUIRE_ALL, fails instead."""
    if not possible:
        (pytest.fail if os.environ.get("CT_REQUIRE_ALL") else pytest.skip)(reason)


@functools.cache
def may_isolate() -> bool:
    """Whether this user may make network and process namespaces, as root or in a user namespace."""
    wanted = ["--net", "--mount", "--pid", "--fork", "--mount-proc", "true"]
    return any(
        subprocess.run(["unshare", *how, *wanted], capture_output=True, check=False).returncode == 0
        for how in ([], ["--user", "--map-root-user"])
    )


def _marked(mark: str) -> list[str]:
    needle = f"CT_TEST_MARK={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if needle in (entry / "environ").read_bytes() and _state(entry) != "Z":
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found.append(f"{entry.name} {command}")
            except OSError:
                pass
    return found


def _state(entry: Path) -> str:
    return (entry / "stat").read_text().rpartition(")")[2].split()[0]
