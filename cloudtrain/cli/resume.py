"""``cloudtrain resume``: a further attempt of a run that has ended."""

from __future__ import annotations

import click

from cloudtrain.cli.types import Numbers, json_option, run_argument
from cloudtrain.errors import SpecError


@click.command()
@run_argument
@click.option("--follow", is_flag=True, help="Show the output of all ranks until the end, and exit as the run does.")
@click.option("--ranks", type=Numbers("ranks"), help="With --follow: the output of these ranks only, such as 0,3.")
@click.option("--quiet", is_flag=True, help="Print the run's id only; with --follow show the end only.")
@json_option
def command(run: str, follow: bool, ranks: frozenset[int] | None, quiet: bool, as_json: bool) -> None:
    """Go on with RUN, which was stopped, preempted or failed: the same job and code, from its last checkpoint.

    A run is named by its id, the beginning of it, or `latest`. It must have been submitted, or run, from this machine.
    """
    if ranks is not None and not follow:
        raise SpecError("--ranks goes with --follow")
    from cloudtrain.cli.submit import notes, say_begun
    from cloudtrain.runs.addressing import find_run

    begun = find_run(run).resume(notes(quiet))
    if follow:
        from cloudtrain.cli.following import follow as follow_run

        follow_run(begun, ranks=ranks, quiet=quiet, as_json=as_json)
    say_begun(begun, quiet, as_json)
