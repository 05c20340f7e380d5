"""``cloudtrain stop``: ask for a run's end."""

from __future__ import annotations

import click

from cloudtrain.cli.types import json_option, run_argument


@click.command()
@run_argument
@click.option("--wait", is_flag=True, help="Until the run is over.")
@json_option
def command(run: str, wait: bool, as_json: bool) -> None:
    """Ask for the end of RUN: its ranks get SIGTERM, and have the provider's grace to save what they have.

    What is over, or ending, is left as it is. `cloudtrain resume` goes on with it later.
    """
    from cloudtrain.runs.addressing import find_run

    found = find_run(run)
    before = found.status()
    if not before.state.is_final:
        found.stop()
    status = before if before.state.is_final else found.wait() if wait else found.status()
    if as_json:
        from cloudtrain.cli.following import print_json

        print_json(status)
    elif before.state.is_final:
        click.echo(f"run {status.run_id} was over already: {status.state}")
    elif status.state.is_final:
        click.echo(f"run {status.run_id}: {status.state}")
    else:
        click.echo(f"run {status.run_id}: asked to stop; it is {status.state}")
