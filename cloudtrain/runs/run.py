"""The handle of a run: its state, logs and end, from this process or any other on the machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloudtrain.errors import JobFailed, SpecError
from cloudtrain.runs.folder import RunFolder, read_json
from cloudtrain.runs.state import State

_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class RunStatus:
    """A run at one moment."""

    run_id: str
    provider: str
    state: State
    reason: str | None
    """What failed first, for a run that failed."""
    exit_code: int | None
    """What ``cloudtrain run`` exits with; None while the run goes on."""


class Run:
    """One run. ``ct.run`` returns it; ``Run.open`` finds an earlier one by its folder."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    @classmethod
    def open(cls, run_id: str, project: str | Path = ".") -> Run:
        """A run of the project in folder ``project`` (where the job file lies); ``latest`` is the newest.

        Raises SpecError if there is no such run.
        """
        return cls(RunFolder.find(Path(project), run_id))

    @property
    def run_id(self) -> str:
        """The name of its folder, unique in the project."""
        return self._folder.run_id

    @property
    def folder(self) -> Path:
        """Where logs, metrics, checkpoints, the model and the report lie."""
        return self._folder.path

    def status(self) -> RunStatus:
        """The state now. A run whose command was killed is FAILED."""
        data = self._folder.read_state()
        try:
            state = State(data.get("state"))
        except ValueError:
            state = State.UNKNOWN
        reason = data.get("reason")
        if not state.is_final and state is not State.UNKNOWN and not self._folder.is_followed():
            data = self._folder.read_state()  # it may have ended between the two looks
            state = State(data["state"])
            if not state.is_final:
                state, reason = State.FAILED, "the process that ran it ended before the run did"
        code = data.get("exit_code")
        if code is None and state.is_final:
            code = state.exit_code
        return RunStatus(self.run_id, str(data.get("provider")), state, reason, code)

    def wait(self, timeout: float | None = None) -> RunStatus:
        """Wait for the end, at most ``timeout`` seconds. Raises TimeoutError if it goes on."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not (status := self.status()).state.is_final:
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"run {self.run_id} is still {status.state} after {timeout:g} s")
            time.sleep(_POLL_SECONDS)
        return status

    def raise_if_failed(self) -> None:
        """Raise JobFailed, with what failed first, unless the run succeeded."""
        status = self.wait()
        if status.state is not State.SUCCEEDED:
            raise JobFailed(f"run {self.run_id} {status.state}: {status.reason}", hint=f"logs: {self._folder.logs}")

    def report(self) -> dict[str, Any]:
        """The end report. Raises SpecError while there is none."""
        return read_json(self._folder.report)

    def logs(self, rank: int | None = None) -> Iterator[str]:
        """The lines kept so far, without their newlines: of one rank, or of all, rank by rank."""
        paths = [self._log(rank)] if rank is not None else sorted(self._folder.logs.glob("rank-*.log"), key=_rank_of)
        for path in paths:
            with path.open(encoding="utf-8", errors="backslashreplace", newline="\n") as file:
                for line in file:
                    yield line.rstrip("\n")

    def _log(self, rank: int) -> Path:
        path = self._folder.logs / f"rank-{rank}.log"
        if not path.is_file():
            raise SpecError(f"run {self.run_id} has no rank {rank}")
        return path

    def stop(self) -> None:
        """Ask a run that goes on to stop: its ranks get SIGTERM, and SIGKILL after the grace. Does not wait."""
        if not self.status().state.is_final:
            self._folder.stop_file.touch()


def _rank_of(path: Path) -> int:
    return int(path.stem.partition("-")[2])
