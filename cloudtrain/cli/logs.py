"""``cloudtrain logs``: what the ranks printed, from any provider, in one form."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from cloudtrain.cli.types import Numbers, Since, attempt_option, json_option, run_argument
from cloudtrain.errors import SpecError

if TYPE_CHECKING:
    from cloudtrain.display.lines import LinesDisplay
    from cloudtrain.runs.run import Run

_WITHOUT_TIMES = {"local": "local runs do", "azureml": "Azure ML does"}
"""Providers whose logs are files of lines and nothing else."""


@click.command()
@run_argument
@click.option("--follow", is_flag=True, help="On to the end of the run, and exit as it does.")
@click.option("--rank", "ranks", type=Numbers("ranks"), metavar="R,...", help="Of these ranks only, such as 0,3.")
@click.option("--node", "nodes", type=Numbers("nodes"), metavar="N,...", help="Of these nodes only, such as 0,1.")
@click.option("--since", type=Since(), metavar="TIME",
              help="What was printed in the last 10m, or since a time such as 2026-11-30T14:05.")  # fmt: skip
@attempt_option
@json_option
def command(
    run: str,
    follow: bool,
    ranks: frozenset[int] | None,
    nodes: frozenset[int] | None,
    since: float | None,
    attempt: int | None,
    as_json: bool,
) -> None:
    """Print the output of RUN: every line once, those of a rank in their order, as [node/rank] text.

    \b
    cloudtrain logs latest --follow
    cloudtrain logs digits-3f9c --rank 0,3 --since 10m
    cloudtrain logs vertex:1234567890 --follow

    [node/-] are the launcher's words, and the platform's. Ctrl-C while following leaves the job running. With --json
    the lines are a JSON document; with --follow it is how the run ended, and the lines go to standard error.
    """  # fmt: skip
    from cloudtrain.display.lines import LinesDisplay
    from cloudtrain.runs.addressing import LATEST, find_run

    found = find_run(run, attempt=attempt)
    if ranks is not None or nodes is not None:
        _refuse_beyond(found, ranks or frozenset(), nodes or frozenset())
    display = LinesDisplay(sys.stderr if as_json else sys.stdout, ranks, nodes)
    if since is not None and found.provider in _WITHOUT_TIMES:
        display.note(f"--since: {_WITHOUT_TIMES[found.provider]} not keep when a line was printed; all are shown")
    if attempt is None and (before := _attempt_before(found)):
        display.note(
            f"this is attempt {before + 1}; cloudtrain logs {found.run_id} --attempt {before} has the one before"
        )
    if follow:
        _follow(found, display, found.run_id if run == LATEST else run, since, as_json)
    elif as_json:
        _print_document(found, display, since)
    else:
        for line in found.logs(since=since):
            display.line(line.node, line.rank, line.text)
        display.close()


def _attempt_before(found: Run) -> int:
    """0 if there is none, or nobody here knows of one."""
    from cloudtrain.runs.ledger import Ledger

    if not Ledger.exists():
        return 0
    with Ledger.open() as ledger:
        entry = ledger.by_native(found.provider, found.native_id)
    return entry.attempt - 1 if entry else 0


def _refuse_beyond(found: Run, ranks: frozenset[int], nodes: frozenset[int]) -> None:
    """Ranks and nodes that the run has not got would be waited for in vain. Of a run that was not begun here nobody
    knows how many there are."""
    from cloudtrain.cli.following import info_of

    info = info_of(found)
    for what, asked, count in (("rank", ranks, info.ranks), ("node", nodes, info.nodes)):
        beyond = ", ".join(str(number) for number in sorted(asked) if number >= count)
        if count and beyond:
            raise SpecError(f"--{what}: run {found.run_id} has no {what} {beyond}; the {what}s are 0 to {count - 1}")


def _follow(found: Run, display: LinesDisplay, name: str, since: float | None, as_json: bool) -> None:
    from cloudtrain.cli.following import print_json, show_ending, to_the_end

    status = to_the_end(found, display, name, since=since)
    if as_json:
        print_json(status)
    else:
        show_ending(status, name)
    sys.exit(status.exit_code)


def _print_document(found: Run, display: LinesDisplay, since: float | None) -> None:
    """Line by line: there may be any number of them."""
    out, between = sys.stdout, "\n"
    out.write(f'{{"run_id": {json.dumps(found.run_id)}, "provider": {json.dumps(found.provider)}, "lines": [')
    for line in found.logs(since=since):
        if display.wants(line.node, line.rank):
            out.write(between + json.dumps(line._asdict()))
            between = ",\n"
    out.write("\n]}\n")
    out.flush()
