"""The port to runs on this machine: their folders are all there is to ask.

A run is known by the absolute path of its folder. Runs made by ``cloudtrain run`` and ones that were submitted to go
on in the background look the same here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cloudtrain.errors import MissingError, RefusedError, SpecError
from cloudtrain.providers.local import artefacts as left
from cloudtrain.providers.local.loglines import read_page
from cloudtrain.providers.local.standing import describe, state_of
from cloudtrain.providers.port import Artefact, Cursor, Description, LogPage, Progress, Uploaded, silent
from cloudtrain.record.folder import RUNS, RunFolder

if TYPE_CHECKING:
    from cloudtrain.bundle import Bundle
    from cloudtrain.providers.base import Request


class LocalRuns:
    """The runs of one project."""

    poll_seconds = 0.2
    settle_seconds = 0.0

    def __init__(self, project: Path) -> None:
        """``project``: the folder of the job file."""
        self._project = project.absolute()

    def upload(
        self, request: Request, bundle: Bundle | None, progress: Progress = silent  # noqa: ARG002 - the port's
    ) -> Uploaded:  # fmt: skip
        """Nothing is sent: a run takes its code from the job's folder when it starts, a further attempt takes the first
        one's."""
        first = request.native["first"]
        if first and not Path(first, "code").is_dir():
            raise MissingError(f"the code of the first attempt is gone: {first}", hint="submit the job again")
        return Uploaded(0, 0)

    def create(self, request: Request) -> Description:
        """Start the run in the background, once. It has its folder, and a copy of the code, when this returns."""
        found = self.find(request)
        if found is None:
            from cloudtrain.providers.local.background import start
            from cloudtrain.providers.local.client import require_torch

            require_torch()
            start(request)
            found = self.find(request)
        if found is None:
            raise RefusedError(f"{request.native['folder']} was removed while the run began")
        return found

    def find(self, request: Request) -> Description | None:
        """The run, if it has been started before."""
        path = Path(request.native["folder"])
        if not (path / "run.json").exists():
            return None
        found = describe(path)
        if found.fingerprint != request.native["fingerprint"]:
            raise RefusedError(f"another run has the folder {path}", hint="submit with --new", cause="invalid")
        return found

    def describe(self, native_id: str) -> Description:
        """How the run stands."""
        return describe(Path(native_id))

    def stop(self, native_id: str) -> None:
        """Ask whoever follows the run to stop it; its ranks get SIGTERM, and SIGKILL after the grace."""
        if not self.describe(native_id).state.is_final:
            RunFolder(Path(native_id)).stop_file.touch()

    def list(self, run_id: str | None = None) -> Iterator[Description]:
        """The project's runs, newest first."""
        found = map(describe, runs_in(self._project))
        wanted = (one for one in found if run_id in (None, one.run_id))
        yield from sorted(wanted, key=lambda one: (one.created or 0, one.attempt), reverse=True)

    def logs(self, native_id: str, cursor: Cursor) -> LogPage:
        """The next lines of all ranks; nothing that was printed is kept back once the run is over."""
        folder, processes, over = RunFolder(Path(native_id)), 1, True
        try:
            state, data = state_of(folder)  # before the look at the lines: the last ones come before the end
            processes, over = int(data.get("processes") or 1), state.is_final
        except (SpecError, ValueError) as error:
            raise RefusedError(f"there is no run in {native_id}", hint=str(error)) from error
        return read_page(folder.logs, cursor, processes=processes, over=over)

    def artefacts(self, native_id: str) -> Iterator[Artefact]:
        """Every file of the run's folders."""
        return left.artefacts(RunFolder(Path(native_id)))

    def fetch(self, artefact: Artefact, folder: Path, progress: Progress = silent) -> None:
        """Copy the file."""
        left.copy(artefact, folder, progress)

    def native_id(self, text: str) -> str:
        """A run's id in this project, or the path of its folder."""
        path = Path(text)
        if Path(text).name == text:
            path = self._project / RUNS / text
        if not (path / "run.json").is_file():
            raise SpecError(f"there is no run {text!r} in {self._project / RUNS}")
        return str(path.resolve())

    def close(self) -> None:
        """Nothing is held open."""


def runs_in(project: Path) -> list[Path]:
    """The folders of all runs of a project."""
    folders = (file.parent for file in (project / RUNS).glob("[!.]*/run.json"))
    return [folder.absolute() for folder in folders if not folder.is_symlink()]  # ``latest`` is one


def connect(account: Mapping[str, str]) -> LocalRuns:
    """The runs of the project in ``account``, or of the current folder."""
    return LocalRuns(Path(account.get("project", ".")))
