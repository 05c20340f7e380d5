"""The port to the toy's service."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloudtrain.errors import MissingError, NotFoundError, RefusedError, SpecError
from cloudtrain.providers.landing import landing
from cloudtrain.providers.localdata import objects
from cloudtrain.providers.nodes import FINGERPRINT
from cloudtrain.providers.port import Artefact, Cause, Cursor, Description, LogPage, Progress, Uploaded, silent
from cloudtrain.providers.shipping import write_code, write_spec
from cloudtrain.record.state import State
from cloudtrain_toy import logs, service
from cloudtrain_toy.translate import path_of

if TYPE_CHECKING:
    from cloudtrain.bundle import Bundle
    from cloudtrain.providers.base import Request, Shipped

_STATES = {
    "Waiting": State.PENDING,
    "Booting": State.PROVISIONING,
    "Working": State.RUNNING,
    "Done": State.SUCCEEDED,
    "Broken": State.FAILED,
    "Halted": State.STOPPED,
}
_OF_THE_JOB = 124
"""Exit codes from here on are the launcher's own."""


class Toy:
    """The jobs in one folder."""

    poll_seconds = 0.2
    settle_seconds = 0.0

    def __init__(self, folder: Path) -> None:
        self._jobs = folder / "jobs"

    def upload(self, request: Request, bundle: Bundle | None, progress: Progress = silent) -> Uploaded:
        sent = present = 0
        for ship in request.ships:
            place = Path(path_of(ship.to))
            if place.exists() and ship.kind != "spec":
                present += _size(place)
            else:
                _fill(place, ship, request, bundle)
                sent += _size(place)
            progress(sent, sent)
        return Uploaded(sent, present)

    def create(self, request: Request) -> Description:
        """The folder appears under its name with its lock held, so of two at once one starts the job."""
        if found := self.find(request):
            return found
        self._jobs.mkdir(parents=True, exist_ok=True)
        new = self._jobs / f".{request.name}.{os.getpid()}"
        new.mkdir()
        kept = {"native": request.native, "run_id": request.spec["run_id"], "attempt": _attempt(request.name)}
        (new / "job.json").write_text(json.dumps(kept))
        service.say(new, "Waiting", created=time.time())
        with (new / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                new.rename(self._jobs / request.name)
            except OSError:  # another process was first
                shutil.rmtree(new)
            else:
                service.ask(self._jobs / request.name, lock.fileno())
        return self.describe(request.name)

    def find(self, request: Request) -> Description | None:
        if not (self._jobs / request.name).is_dir():
            return None
        found = self.describe(request.name)
        if found.fingerprint != request.native["variables"][FINGERPRINT]:
            raise RefusedError(f"another job is called {request.name}", hint="submit with --new", cause="invalid")
        return found

    def describe(self, native_id: str) -> Description:
        job, status = self._read(native_id)
        word = status["state"]
        variables = job["native"]["variables"]
        return Description(
            provider="toy",
            native_id=native_id,
            name=native_id,
            state=_STATES.get(word, State.UNKNOWN),
            vendor_state=word,
            reason=status.get("reason", ""),
            cause=_cause(status),
            run_id=job["run_id"],
            attempt=job["attempt"],
            fingerprint=variables[FINGERPRINT],
            created=status["created"],
            started=status.get("started"),
            ended=status.get("ended"),
            nodes=job["native"]["nodes"],
            policy=variables["CLOUDTRAIN_POLICY"],
        )

    def stop(self, native_id: str) -> None:
        if not self.describe(native_id).state.is_final:
            (self._jobs / native_id / "stop").touch()

    def list(self, run_id: str | None = None) -> Iterator[Description]:
        found = [self.describe(path.name) for path in self._jobs.glob("[!.]*")]
        wanted = (one for one in found if run_id in (None, one.run_id))
        yield from sorted(wanted, key=lambda one: one.created or 0, reverse=True)

    def logs(self, native_id: str, cursor: Cursor) -> LogPage:
        over = self.describe(native_id).state.is_final  # first: the last lines come before the end
        return logs.page(self._jobs / native_id, cursor, over)

    def artefacts(self, native_id: str) -> Iterator[Artefact]:
        for kind, place in _places(self._read(native_id)[0]["native"]["variables"]):
            for path in sorted(path for path in place.rglob("*") if path.is_file()):
                yield Artefact(kind, path.relative_to(place).as_posix(), path.stat().st_size, str(path))

    def fetch(self, artefact: Artefact, folder: Path, progress: Progress = silent) -> None:
        with Path(artefact.source).open("rb") as source, landing(folder, artefact.path) as target:
            shutil.copyfileobj(source, target)
        progress(artefact.size, artefact.size)

    def native_id(self, text: str) -> str:
        if Path(text).name != text:
            raise SpecError(f"a toy's job is called as its folder, not {text!r}")
        return text

    def close(self) -> None:
        """Nothing is held open."""

    def _read(self, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        folder = self._jobs / name
        if not (folder / "job.json").is_file():
            raise NotFoundError(f"there is no job {name} in {self._jobs}")
        going_on = _is_held(folder / "lock")
        status = json.loads((folder / "status.json").read_text())
        if not going_on and not _STATES[status["state"]].is_final:
            status = {**status, "state": "Broken", "reason": "the service was killed"}
        return json.loads((folder / "job.json").read_text()), status


def connect(account: Mapping[str, str]) -> Toy:
    """The jobs of the folder in the settings."""
    return Toy(Path(account["folder"]))


def _fill(place: Path, ship: Shipped, request: Request, bundle: Bundle | None) -> None:
    """The folder appears complete: what lies there is not sent again."""
    if ship.kind == "spec":
        write_spec(request.spec, place)
        return
    new = place.with_name(f".{place.name}.{os.getpid()}")
    if ship.kind == "data":
        for key, file in objects(Path(ship.source)):
            (new / key).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, new / key)
    elif bundle is None:
        raise MissingError(f"the code is gone: {place}", hint="submit the job again")
    else:
        write_code(bundle, new)
    new.rename(place)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _attempt(name: str) -> int:
    return int(name.rpartition("-a")[2])


def _cause(status: Mapping[str, Any]) -> Cause:
    if status["state"] != "Broken":
        return ""
    codes = [code for code in status.get("codes", ()) if code]
    return "user-code" if codes and all(0 < code < _OF_THE_JOB for code in codes) else "infrastructure"


def _places(variables: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    for kind in ("model", "output", "metrics"):
        yield kind, Path(variables[f"CLOUDTRAIN_{kind.upper()}_DIR"])
    yield "checkpoints", Path(variables["CLOUDTRAIN_CHECKPOINT_DIR"])
    for name, place in variables.items():
        if name.startswith("CLOUDTRAIN_OUTPUT_") and name != "CLOUDTRAIN_OUTPUT_DIR":
            yield f"outputs/{name.removeprefix('CLOUDTRAIN_OUTPUT_').lower()}", Path(place)


def _is_held(lock: Path) -> bool:
    """Whether the job's service lives."""
    with lock.open("r") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
