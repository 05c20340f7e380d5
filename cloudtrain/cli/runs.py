"""``cloudtrain runs``: the runs of this user, here and on the clouds."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

from cloudtrain.cli.types import json_option
from cloudtrain.errors import did_you_mean
from cloudtrain.record.state import State

if TYPE_CHECKING:
    from cloudtrain.runs.ledger import Entry

_OPTIONAL = ("took", "created", "provider")
"""Columns that give way on a narrow terminal, in this order."""


class OneState(click.ParamType[State]):
    """``RUNNING``, in any letters."""

    name = "state"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> State:
        try:
            return State(str(value).upper())
        except ValueError:
            known = ", ".join(state.value for state in State)
            self.fail(f"{value!r} is no state{did_you_mean(str(value), State)}; the states are {known}", param, ctx)


@click.command()
@click.option("--provider", metavar="P", help="Of sagemaker, vertex, azureml or local only.")
@click.option("--name", metavar="N", help="Of the job with this name only.")
@click.option("--state", type=OneState(), metavar="S",
              help="In this state only, such as RUNNING or FAILED.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="At most so many.")
@json_option
def command(provider: str | None, name: str | None, state: State | None, limit: int, as_json: bool) -> None:
    """List runs, the newest first: those submitted or run from this machine, and all of the project in this folder.

    Asks no cloud: the state of a cloud's run is the one last seen. `cloudtrain status RUN` asks.
    """
    from cloudtrain.providers.registry import known
    from cloudtrain.runs.listing import runs

    if provider is not None:
        known(provider, local=True)
    found = runs(limit, provider=provider, name=name, state=state)
    if as_json:
        click.echo(json.dumps([entry.as_dict() for entry in found], indent=1))
    elif not found:
        click.echo("none")
    else:
        _print(found)


def _print(found: list[Entry]) -> None:
    from cloudtrain.display.standing import short
    from cloudtrain.display.table import table
    from cloudtrain.display.times import moment
    from cloudtrain.wording import printable

    rows: list[dict[str, str]] = [
        {"run": printable(entry.run_id), "provider": entry.provider, "state": entry.state.value,
         "created": moment(entry.created), "took": _took(entry), "reason": short(entry.reason, "table")}
        for entry in found
    ]  # fmt: skip
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    columns = _that_fit(rows, width)
    least = max(len(row["run"]) for row in rows)  # half an id is of no use
    for line in table(columns, [[row[column] for column in columns] for row in rows]):
        click.echo(line if width is None else line[: max(width, least)].rstrip())


def _that_fit(rows: list[dict[str, str]], width: int | None) -> list[str]:
    """The reason, which comes last, is cut; what stands before it is shown whole or not at all."""
    columns = list(rows[0])
    for column in _OPTIONAL if width else ():
        needed = sum(max(len(name), *(len(row[name]) for row in rows)) + 2 for name in columns[:-1])
        if needed <= (width or 0):
            break
        columns.remove(column)
    return columns


def _took(entry: Entry) -> str:
    import time

    from cloudtrain.display.times import span

    if entry.state.is_final and entry.ended is None:
        return "-"
    return span((entry.ended or time.time()) - (entry.started or entry.created))
