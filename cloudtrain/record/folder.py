"""The folder of one run: ``.cloudtrain/runs/<id>/`` next to the job file.

    run.json      the state, replaced as a whole        logs/        rank-<r>.log, node-<k>.log
    job.yaml      the job as it ran                     metrics/     rank-<r>.jsonl
    spec.json     what the launchers were given         checkpoints/ model/ output/ outputs/<name>/
    code/         the code as it shipped                nodes/<k>/   report.json of each node
    report.json   the end report                        lock         held while the run is followed

With ``run --as`` instead of code/:

    request.json  the cloud's native request            nodes/<k>/   also what that cloud gives a node
    shipped/      code/ and spec/, as they would be uploaded

A run whose state says it is going on while nobody holds its lock was cut off.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cloudtrain.errors import MissingError, SpecError

LATEST = "latest"
RUNS = Path(".cloudtrain", "runs")
"""The folder of all runs, below that of the job file."""


def new_run_id(name: str) -> str:
    """``digits-20261130-201500-k3f9``: the job's name, the local time, and four letters against collisions."""
    letters = "".join(secrets.choice("abcdefghijkmnpqrstuvwxyz23456789") for _ in range(4))
    return f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-{letters}"


class RunFolder:
    """Paths and files of one run, or of one attempt of it."""

    def __init__(self, path: Path, run_id: str | None = None, attempt: int = 1) -> None:
        """``run_id``: where it is not the folder's name, which that of a further attempt is not."""
        self.path = path
        self.run_id = run_id or path.name
        self.attempt = attempt

    @classmethod
    def create(cls, project: Path, run_id: str) -> RunFolder:
        """Make the folder of a new run under ``project``. Raises MissingError if the disk does not let us."""
        runs = project / RUNS
        folder = cls(runs / run_id)
        try:
            folder.path.mkdir(parents=True, mode=0o700)  # logs and arguments are the user's own
            for name in ("logs", "metrics", "nodes", "checkpoints", "model", "output"):
                (folder.path / name).mkdir(parents=True)
            keep_from_shipping(runs.parent)
        except OSError as error:
            raise cannot_write(error, folder.path) from error
        return folder

    @classmethod
    def find(cls, project: Path, run_id: str, name: str | None = None) -> RunFolder:
        """The folder of an earlier run; ``latest`` is the newest, of jobs called ``name`` if that is given.

        Raises SpecError if there is none.
        """
        runs = project / RUNS
        if run_id == LATEST and name is not None:
            run_id = _newest_of(runs, name) or run_id
        if Path(run_id).name == run_id and not (runs / run_id).exists():
            run_id = _newest_attempt(runs, run_id)
        path = runs / run_id
        if Path(run_id).name != run_id or not (path / "run.json").is_file():
            known = [p for p in runs.glob("*/run.json") if p.parent.name != LATEST]
            newest = max(known, key=lambda p: p.stat().st_mtime, default=None)
            hint = f"the newest here is {newest.parent.name}" if newest else "no run has been made here yet"
            raise SpecError(f"there is no run {run_id!r} in {runs}", hint=hint)
        return cls(path.resolve())

    @property
    def logs(self) -> Path:
        """``rank-<r>.log`` and ``node-<k>.log``."""
        return self.path / "logs"

    @property
    def metrics(self) -> Path:
        """``rank-<r>.jsonl``."""
        return self.path / "metrics"

    @property
    def code(self) -> Path:
        """The code as it shipped."""
        return self.path / "code"

    @property
    def model(self) -> Path:
        """CLOUDTRAIN_MODEL_DIR of every rank."""
        return self.path / "model"

    @property
    def report(self) -> Path:
        """The end report, once the run is over."""
        return self.path / "report.json"

    @property
    def stop_file(self) -> Path:
        """Made by ``Run.stop``; whoever follows the run looks for it."""
        return self.path / "stop"

    @property
    def lock(self) -> Path:
        """Held while somebody is with the run."""
        return self.path / "lock"

    def node(self, node: int) -> Path:
        """What belongs to one node."""
        return self.path / "nodes" / str(node)

    def read_state(self) -> dict[str, Any]:
        """What run.json says. Raises SpecError if it is no run's state."""
        return read_json(self.path / "run.json")

    def write_state(self, state: dict[str, Any]) -> None:
        """Replace run.json. Raises MissingError if the disk does not let us."""
        write_json(self.path / "run.json", state)

    def update_state(self, **changes: Any) -> None:
        """Change some fields of run.json. A disk that is full must not end a run that goes on without it."""
        with contextlib.suppress(MissingError, SpecError):
            self.write_state({**self.read_state(), **changes})

    def make_latest(self) -> None:
        """Point ``latest`` at this run, by a rename, so that it always points somewhere."""
        link = self.path.parent / LATEST
        new = self.path.parent / f".{LATEST}-{self.path.name}"
        try:
            new.symlink_to(self.path.name)
            new.replace(link)
        except OSError:  # a file system without links, or a folder in the way: then there is no `latest`
            new.unlink(missing_ok=True)

    @contextlib.contextmanager
    def followed(self) -> Iterator[int]:
        """Hold the lock that says that somebody is with this run. Yields the open file: a process that inherits it
        holds the lock, too."""
        with self.lock.open("w") as file:
            _lock(file.fileno())
            yield file.fileno()

    def is_followed(self) -> bool:
        """Whether some process, this one included, is with the run."""
        try:
            with self.lock.open("r") as file:
                return not _lock(file.fileno(), shared=True)
        except OSError:
            return False


def _newest_of(runs: Path, name: str) -> str | None:
    """The folder of the newest run of a job."""
    found = []
    for path in runs.glob(f"{name}-*/run.json"):  # a job's name has nothing that a pattern would mean
        with contextlib.suppress(SpecError):
            data = read_json(path)
            if data.get("name") == name:
                found.append((float(data.get("submitted") or data.get("started") or 0), path.parent.name))
    return max(found)[1] if found else None


def _newest_attempt(runs: Path, run_id: str) -> str:
    """The folder of a run that was submitted, which is named after its attempt."""
    pattern = re.compile(re.escape(run_id) + r"-a([0-9]+)")
    names = (path.parent.name for path in runs.glob("*/run.json"))
    attempts = {int(match[1]): name for name in names if (match := pattern.fullmatch(name))}
    return attempts[max(attempts)] if attempts else run_id


def _lock(fd: int, shared: bool = False) -> bool:
    """Take the file's lock for as long as it is open; False if another process holds it for itself."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file of a run. Raises SpecError if it is not there or not that."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise SpecError(f"{path} cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise SpecError(f"{path} does not hold an object")
    return data


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Replace a file as a whole, so that a reader, or a crash, never meets half of it."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        new.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        new.replace(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise cannot_write(error, path) from error


def keep_from_shipping(folder: Path) -> None:
    """What lies in a project ships with its next job, but for what a ``.gitignore`` names. Raises OSError."""
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")


def cannot_write(error: OSError, path: Path) -> MissingError:
    """The error for a folder that cannot be written: full, read-only, not ours."""
    return MissingError(
        f"cannot write {path}: {error.strerror or error}",
        hint="free some space there, or run from a folder you may write to",
    )
