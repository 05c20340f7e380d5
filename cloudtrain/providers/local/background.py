"""A local run that nobody waits for: a process of its own, which outlives whoever has started it.

    folder made, its lock taken -> process started, which inherits the lock -> it says that the run has begun

The folder appears under its name only with a state in it and with its lock held, and the lock is passed on, never
taken anew. So whoever looks sees a run that goes on for as long as either process is there; and when one dies in
between, one that was cut off. Linux and macOS only, as are all local runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from cloudtrain.bundle import scan
from cloudtrain.errors import MissingError, SpecError
from cloudtrain.providers.base import Request
from cloudtrain.providers.local.keeping import close_state
from cloudtrain.providers.local.prepare import checkpoint_folder
from cloudtrain.providers.local.request import job_of, options_of
from cloudtrain.providers.local.run import Place, run_local
from cloudtrain.providers.local.stopping import stoppable
from cloudtrain.record.folder import RunFolder, cannot_write, read_json, write_json
from cloudtrain.record.observer import Observer, RunInfo
from cloudtrain.record.state import State

LOG = "background.log"
REQUEST = "submitted.json"
_KEPT = ("run_id", "attempt", "nodes", "processes", "job_file", "policy", "fingerprint")


def start(request: Request) -> bool:
    """Start the run, and wait until its code has been copied: what is changed after that changes nothing.

    False if another process was first to start it. Raises SpecError or MissingError if it could not begin; the folder
    then says why.
    """
    final = Path(request.native["folder"])
    new = RunFolder.create(Path(request.account["project"]), f".{final.name}.{os.getpid()}")
    with new.followed() as lock:
        try:
            _fill(new, request)
            new.path.rename(final)
        except OSError as error:
            shutil.rmtree(new.path, ignore_errors=True)
            if final.is_dir():
                return False
            raise cannot_write(error, final) from error
        said = _start_process(RunFolder(final), lock)
    if "error" in said:
        raise (SpecError if said["error"] == "SpecError" else MissingError)(said["message"], hint=said["hint"])
    return True


def _fill(new: RunFolder, request: Request) -> None:
    native = request.native
    write_json(new.path / REQUEST, native)
    job = job_of(native)
    (new.path / "job.yaml").write_text(job.dump(), encoding="utf-8")
    first = RunFolder(Path(native["first"] or native["folder"]), native["run_id"])
    new.write_state(
        {"version": 1, "provider": "local", "name": job.name, "state": State.PENDING.value,
         **{name: native[name] for name in _KEPT}, "checkpoints": str(checkpoint_folder(job, first, None)),
         "submitted": time.time(), "started": None, "ended": None, "exit_code": None, "reason": None}
    )  # fmt: skip


def _start_process(folder: RunFolder, lock: int) -> dict[str, Any]:
    """Start it, and return what it says, once it has said it or has ended: ``{}`` where it had nothing to say."""
    heard, said = os.pipe()
    program = (
        "import sys; getattr(sys.flags, 'safe_path', False) or sys.path.pop(0); "
        "from cloudtrain.providers.local import background; "
        f"background.main({str(folder.path)!r}, {lock}, {said})"
    )
    try:
        with (folder.path / LOG).open("ab") as log:
            subprocess.run(  # ends at once: see main
                [sys.executable, "-c", program], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, pass_fds=(lock, said), check=False,
            )  # fmt: skip
    except OSError as error:
        os.close(heard)
        missing = MissingError(f"cannot start {sys.executable}: {error.strerror or error}")
        close_state(folder, missing)
        raise missing from error
    finally:
        os.close(said)
    with open(heard, encoding="utf-8") as answer:  # noqa: PTH123 - a pipe
        text = answer.read()
    answered: dict[str, Any] = json.loads(text) if text else {}
    return answered


def main(path: str, lock: int, said: int) -> None:
    """The background process, run as ``python -c``: a run to its end. ``lock`` and ``said`` are open files."""
    if os.fork():  # whoever has started this one need not stay to hear of its end
        os._exit(0)
    for fd in (lock, said):
        os.set_inheritable(fd, False)
    with open(said, "w", encoding="utf-8") as answer:
        try:
            _run(Path(path), _Background(answer))
        except (SpecError, MissingError) as error:
            print(f"cloudtrain: {error}", file=sys.stderr)
            kind = "SpecError" if isinstance(error, SpecError) else "MissingError"
            _say(answer, {"error": kind, "message": error.message, "hint": error.hint})
            sys.exit(error.exit_code)


def _run(path: Path, observer: Observer) -> None:
    native = read_json(path / REQUEST)
    folder = RunFolder(path, native["run_id"], native["attempt"])
    try:
        with stoppable() as stopper:
            first = Path(native["first"]) if native["first"] else None
            place = Place(folder, scan(first / "code", above=False) if first else None)
            options = replace(options_of(first), resume=first.name if first else None)
            report = run_local(job_of(native), options, observer, on_start=stopper.follow, place=place)
    except BaseException as error:
        close_state(folder, error)
        raise
    sys.exit(report["exit_code"])


class _Background(Observer):
    """Tells whoever has started the run that it has begun; notes go to the log."""

    def __init__(self, answer: TextIO) -> None:
        self._answer = answer

    def begin(self, info: RunInfo) -> None:  # noqa: ARG002 - the code has been copied, that is what counts
        _say(self._answer, {})

    def note(self, text: str) -> None:
        print(f"cloudtrain: {text}", file=sys.stderr, flush=True)


def _say(answer: TextIO, what: dict[str, Any]) -> None:
    """Once; nobody may be left to hear it."""
    with contextlib.suppress(OSError, ValueError):
        answer.write(json.dumps(what))
        answer.close()
