"""The handle of a run: its state, logs, results and end, wherever it runs, from any process."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloudtrain.errors import JobFailed, MissingError, SpecError
from cloudtrain.providers.port import Artefact, Client, Cursor, LogLine, Progress, silent
from cloudtrain.record.observer import Observer
from cloudtrain.record.state import State
from cloudtrain.runs.status import RunStatus

if TYPE_CHECKING:
    from cloudtrain.runs.ledger import Entry

__all__ = ["Run", "RunStatus"]

LOCAL = "local"


class Run:
    """One run. ``ct.run`` and ``ct.submit`` return it; ``Run.open`` finds an earlier one."""

    def __init__(
        self,
        provider: str,
        native_id: str,
        account: Mapping[str, str],
        *,
        run_id: str = "",
        state: State | None = None,
    ) -> None:
        """The attempt that the provider knows as ``native_id``; ``state``: how it was last seen."""
        self.provider = provider
        self.native_id = native_id
        self._account = dict(account)
        self._run_id = run_id
        self._state = state

    @classmethod
    def open(cls, run: str, project: str | Path = ".", *, attempt: int | None = None) -> Run:
        """An earlier run: its id, the beginning of one, ``latest``, or ``sagemaker:NAME`` and the like.

        ``project`` is the folder where the job file lies; ``attempt``, counted from 1, an earlier attempt of a run that
        was resumed. Raises SpecError if there is no such run.
        """
        from cloudtrain.runs.addressing import find_run

        return find_run(run, Path(project), attempt)

    @classmethod
    def of(cls, entry: Entry) -> Run:
        """The newest attempt of a run of the ledger. It has been created."""
        return cls(entry.provider, entry.native_id, entry.account, run_id=entry.run_id, state=entry.state)

    def at(self, native_id: str) -> Run:
        """Another attempt of this run."""
        return Run(self.provider, native_id, self._account, run_id=self._run_id)

    def __repr__(self) -> str:
        """Who it is, and how it stood when it was last looked at from here; asks nobody."""
        state = f", {self._state} when it was last looked at" if self._state else ""
        return f"<Run {self._run_id or self.native_id} on {self.provider}{state}>"

    @cached_property
    def client(self) -> Client:
        """The port to the provider; loads the vendor's SDK."""
        from cloudtrain.providers import registry  # a local run needs nothing of any cloud

        return registry.connect(self.provider, self._account)

    def close(self) -> None:
        """Give the connections to the provider back. The run goes on, and what is asked next opens others."""
        if (client := self.__dict__.pop("client", None)) is not None:
            client.close()

    @property
    def run_id(self) -> str:
        """Names the run, all its attempts; read from the provider for a job that the ledger does not know."""
        if not self._run_id:
            self._run_id = self.client.describe(self.native_id).run_id or self.native_id
        return self._run_id

    @property
    def folder(self) -> Path:
        """Where all that a local run has written lies. Raises SpecError for others."""
        if self.provider != LOCAL:
            raise SpecError(f"run {self.run_id} has no folder here: it ran on {self.provider}; download() brings files")
        return Path(self.native_id)

    def status(self) -> RunStatus:
        """The state now, as the provider has it; kept in the ledger."""
        seen = self.client.describe(self.native_id)
        status = RunStatus.of(self._run_id or seen.run_id or self.native_id, seen)
        self._state = seen.state
        _keep(status.run_id, seen)
        return status

    def wait(self, timeout: float | None = None) -> RunStatus:
        """Wait for the end, and why it came, at most ``timeout`` seconds. Raises TimeoutError if it goes on."""
        from cloudtrain.runs.following import poll_seconds

        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.status()).exit_code is None:
            left = poll_seconds(self.client)
            if deadline is not None:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"run {self.run_id} is still {status.state} after {timeout:g} s")
                left = min(left, max(0.01, deadline - time.monotonic()))
            time.sleep(left)
        return status

    def follow(self, observer: Observer, *, since: float | None = None) -> RunStatus:
        """Tell the observer of states and lines until the end. Interrupted, it leaves the job as it is.

        ``since``: seconds since the epoch, for lines; those without a time count as later.
        """
        from cloudtrain.runs.following import Follower
        from cloudtrain.runs.ledger import Ledger

        with Ledger.open() as ledger:
            seen = Follower(self.client, self.native_id, observer, ledger, run_id=self._run_id, since=since).run()
        self._state = seen.state
        return RunStatus.of(self._run_id or seen.run_id or self.native_id, seen)

    def raise_if_failed(self) -> None:
        """Raise JobFailed, with what failed first, unless the run succeeded."""
        status = self.wait()
        if status.state is not State.SUCCEEDED:
            where = f"logs: {self.folder / 'logs'}" if self.provider == LOCAL else f"cloudtrain logs {self.run_id}"
            raise JobFailed(f"run {self.run_id} {status.state}: {status.reason}", hint=where)

    def report(self) -> dict[str, Any]:
        """The end report of a local run. Raises SpecError while there is none, and for runs elsewhere."""
        from cloudtrain.record.folder import RunFolder, read_json

        return read_json(RunFolder(self.folder).report)

    def logs(
        self,
        rank: int | None = None,
        node: int | None = None,
        *,
        since: float | None = None,
        follow: bool = False,
    ) -> Iterator[LogLine]:
        """The lines so far, of one rank, of one node, or of all; ``str`` of one is ``[node/rank] text``.

        ``since``: seconds since the epoch; lines without a time count as later. ``follow``: on to the end of the run.
        """
        for line in self._lines(follow):
            if rank is not None and line.rank != rank:
                continue
            if node is not None and line.node != node:
                continue
            if since is None or line.time is None or line.time >= since:
                yield line

    def _lines(self, follow: bool) -> Iterator[LogLine]:
        from cloudtrain.runs.following import Follower

        if not follow:
            cursor: Cursor = {}
            caught_up = False
            while not caught_up:
                lines, cursor, caught_up = self.client.logs(self.native_id, cursor)
                yield from lines
            return
        come: list[LogLine] = []
        follower = Follower(self.client, self.native_id, Observer(), None, run_id=self._run_id, tell=come.append)
        for _ in follower.steps():
            yield from come
            come.clear()

    def stop(self) -> None:
        """Ask a run that goes on to stop: its ranks get SIGTERM, and SIGKILL after the grace. Does not wait."""
        self.client.stop(self.native_id)

    def resume(self, observer: Observer | None = None) -> Run:
        """A further attempt, which goes on from the checkpoints. Raises SpecError for a run that has not ended, or
        that this machine's ledger does not know."""
        from cloudtrain.runs.resuming import resume

        if self.provider == LOCAL:  # it may be older than the ledger
            from cloudtrain.record.folder import RunFolder
            from cloudtrain.runs.recording import keep

            keep(RunFolder(self.folder))
        return resume(self.run_id, observer or Observer())

    def artefacts(self) -> Iterator[Artefact]:
        """The files it has left, as far as they are there."""
        return self.client.artefacts(self.native_id)

    def download(
        self,
        to: str | Path | None = None,
        kinds: Collection[str] | None = None,
        progress: Progress = silent,
        *,
        force: bool = False,
    ) -> list[Path]:
        """Bring the files of these kinds (by default all but checkpoints) into folder ``to``, by default one called as
        the run, with a ``.gitignore`` so that it does not ship as code. Returns the folders of the kinds that there
        were. Raises SpecError if there was none, and for files that lie there already and differ, unless ``force``."""
        from cloudtrain.runs.downloading import download

        folder = Path(to) if to is not None else Path(self.run_id)
        return download(self, folder, kinds, progress, force=force, alone=to is None)


def _keep(run_id: str, seen: Any) -> None:
    """In the ledger, if the run is there. A status that cannot be kept is still a status."""
    from cloudtrain.runs.following import record
    from cloudtrain.runs.ledger import Ledger

    if Ledger.exists():
        with contextlib.suppress(MissingError), Ledger.open() as ledger:
            record(ledger, run_id, seen, Observer())
