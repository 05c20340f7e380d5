"""Following a run from the command line: lines until its end, and what becomes of it when the user leaves."""

from __future__ import annotations

import signal
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

import click

from cloudtrain.errors import MissingError, RefusedError

if TYPE_CHECKING:
    from cloudtrain.record.observer import Observer, RunInfo
    from cloudtrain.runs.run import Run
    from cloudtrain.runs.status import RunStatus


def display_for(ranks: Collection[int] | None, *, live: bool | None = None, quiet: bool, as_json: bool) -> Observer:
    """The live view on a terminal, plain lines elsewhere; with ``as_json`` standard output is left to the report."""
    on_terminal = sys.stdout.isatty() and not quiet and not as_json
    if live or (live is None and on_terminal):
        from cloudtrain.display.live import LiveDisplay

        return LiveDisplay(ranks)
    from cloudtrain.display.plain import PlainDisplay

    return PlainDisplay(sys.stderr if as_json else sys.stdout, ranks, quiet=quiet)


def follow(run: Run, *, ranks: Collection[int] | None, quiet: bool, as_json: bool) -> NoReturn:
    """Show a run that was just started until its end, and end this command as the run did."""
    display = display_for(ranks, quiet=quiet, as_json=as_json)
    display.begin(info_of(run))
    status = to_the_end(run, display, run.run_id)
    show_end(run, status, display, run.run_id)
    if as_json:
        print_json(status)
    sys.exit(status.exit_code)


def to_the_end(run: Run, observer: Observer, name: str, *, since: float | None = None) -> RunStatus:
    """Follow the run. Ctrl-C, or SIGTERM, ends the command and not the job; the user is told how to stop that.

    ``name``: what the user calls the run. An error leaves the job going on, too, and says so.
    """
    try:
        with _leaving():
            return run.follow(observer, since=since)
    except Left as leaving:
        observer.close()
        with suppress(OSError):
            click.echo(f"\ncloudtrain: no longer following; run {name} goes on", err=True)
            click.echo(f"  follow   cloudtrain logs {name} --follow\n  stop     cloudtrain stop {name}", err=True)
        raise SystemExit(128 + leaving.number) from None
    except (RefusedError, MissingError) as error:
        again = f"the job is left as it is; look again with: cloudtrain logs {name} --follow"
        error.hint = f"{error.hint}\n{again}" if error.hint else again
        raise
    finally:
        observer.close()


def show_end(run: Run, status: RunStatus, display: Observer, name: str) -> None:
    """The last words. A local run has left a report, which knows more."""
    if run.provider == "local":
        from cloudtrain.errors import SpecError

        with suppress(SpecError):
            return display.end(run.report())
    return show_ending(status, name)


def show_ending(status: RunStatus, name: str) -> None:
    """What a run ended of, and what to do next."""
    from cloudtrain.display.standing import ending

    with suppress(OSError):
        for line in ending(status, name):
            click.echo(line, err=True)


def print_json(status: RunStatus) -> None:
    """The one document on standard output."""
    import json

    click.echo(json.dumps(status.as_dict(), indent=1))


class Left(KeyboardInterrupt):
    """The user has gone, and the job stays."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextmanager
def _leaving() -> Iterator[None]:
    """Turns both signals into ``Left``. Once one has come a further one must not cut the words about it short."""

    def leave(number: int, _: FrameType | None) -> None:
        raise Left(number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    except Left:
        before = dict.fromkeys(numbers, signal.SIG_IGN)
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def info_of(run: Run) -> RunInfo:
    """What the ledger knows of it; 0 nodes, or processes, where it does not know."""
    from cloudtrain.record.observer import RunInfo
    from cloudtrain.runs.ledger import Ledger

    entry, plan = None, None
    if Ledger.exists():
        with Ledger.open() as ledger:
            entry, plan = ledger.entry(run.run_id), ledger.plan(run.run_id)
    processes = (plan or {}).get("processes")
    return RunInfo(
        run_id=run.run_id,
        folder=run.folder if run.provider == "local" else None,
        nodes=entry.nodes if entry else 0,
        processes=processes if isinstance(processes, int) else 0,
        provider=run.provider,
    )
