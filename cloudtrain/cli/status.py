"""``cloudtrain status``: how a run stands."""

from __future__ import annotations

import click

from cloudtrain.cli.types import attempt_option, json_option, run_argument


@click.command()
@run_argument
@attempt_option
@json_option
def command(run: str, attempt: int | None, as_json: bool) -> None:
    """Show how RUN stands, as its provider has it now, why it ended, and what to do next.

    \b
    cloudtrain status latest
    cloudtrain status digits-3f9c
    cloudtrain status sagemaker:digits-3f9c2b71aa-a1

    A run is named by its id, the beginning of it, `latest`, or by what the provider calls it: then it need not have
    been submitted from this machine. Exit code 0, however the run stands.
    """  # fmt: skip
    from cloudtrain.cli.following import print_json
    from cloudtrain.runs.addressing import LATEST, find_run

    status = find_run(run, attempt=attempt).status()
    if as_json:
        return print_json(status)
    from cloudtrain.display.standing import standing

    for line in standing(status, status.run_id if run == LATEST else run):
        click.echo(line)
    return None
