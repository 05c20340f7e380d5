"""``cloudtrain run``: train here, the way the clouds would."""

from __future__ import annotations

import gc
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import click

from cloudtrain.cli.following import display_for
from cloudtrain.cli.types import Numbers, Seconds
from cloudtrain.providers.local.options import Cloud, LocalOptions
from cloudtrain.providers.local.stopping import stoppable


def _channels(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, Path]:
    channels = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise click.BadParameter(f"{text!r} is not CHANNEL=PATH", ctx, param)
        channels[name] = Path(path)
    return channels


@click.command()
@click.argument("job", type=click.Path(dir_okay=True, path_type=Path))
@click.option("--nodes", type=click.IntRange(1, 256), help="Simulated nodes.  [default: from the job]")
@click.option("--processes", type=click.IntRange(1, 1024), help="Processes per node.  [default: from the job]")
@click.option(
    "--isolation",
    type=click.Choice(["auto", "netns", "none"]),
    default="auto",
    show_default=True,
    help="netns: an address, host name and process tree of its own per node (Linux, no internet inside); "
    "none: all on this machine's network.",
)
@click.option(
    "--engine",
    type=click.Choice(["auto", "fork", "agents"]),
    default="auto",
    show_default=True,
    help="fork: torch is loaded once for all; agents: fresh interpreters on every node, as on a cloud.",
)
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "gpu"]),
    default="auto",
    show_default=True,
    help="auto takes GPUs if there is one for every process.",
)
@click.option(
    "--as",
    "as_",
    type=click.Choice(get_args(Cloud)),
    help="Translate for this cloud and run through its in-container contract: the files and variables of every node.",
)
@click.option("--data", multiple=True, metavar="CHANNEL=PATH", callback=_channels, help="Where a channel lies here.")
@click.option("--ranks", type=Numbers("ranks"), help="Show the output of these ranks only, such as 0,3.")
@click.option("--grace", type=Seconds(), default="30s", show_default=True, help="From SIGTERM to SIGKILL.")
@click.option(
    "--start-timeout",
    type=Seconds(),
    default="10m",
    show_default=True,
    help="For all nodes to connect and all ranks to join.",
)
@click.option("--resume", metavar="RUN", help="Continue from the checkpoints of an earlier run, or `latest`.")
@click.option("--live/--plain", default=None, help="Live view or plain lines.  [default: live on a terminal]")
@click.option("--quiet", is_flag=True, help="Show the end only.")
@click.option("--json", "as_json", is_flag=True, help="The end report on standard output, all else on standard error.")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def command(
    job: Path,
    args: tuple[str, ...],
    ranks: frozenset[int] | None,
    live: bool | None,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Train JOB here, on simulated nodes, exactly the way a cloud would start it. ARGS, behind --, go to the script.

    \b
    cloudtrain run job.yaml
    cloudtrain run job.yaml --nodes 2 --processes 2 -- --epochs 1
    cloudtrain run job.yaml --as sagemaker

    Exit codes: 0 done, 1 the job failed, 2 the job file or the command line is wrong, 3 something is missing here,
    130 interrupted, 143 stopped by SIGTERM.
    """  # fmt: skip
    from cloudtrain.providers.local.client import host_for

    chosen = LocalOptions(args=args, **options)
    with stoppable() as stopper:
        host = host_for(chosen)  # loads torch while the rest is imported and the job is read
        try:
            from cloudtrain.job import Job
            from cloudtrain.providers.local.run import run_local

            loaded = Job.load(job)
            display = display_for(ranks, live=live, quiet=quiet, as_json=as_json)
        except BaseException:
            host.close()
            raise
        report = run_local(loaded, chosen, display, host=host, on_start=stopper.follow)
    if as_json:
        click.echo(json.dumps(report, indent=1))
    elif not quiet:
        _show_curve(report)
    gc.freeze()  # nothing is left to collect; looking for it would cost more than the exit itself
    sys.exit(report["exit_code"])


def _show_curve(report: dict[str, Any]) -> None:
    from cloudtrain.display.curve import draw_loss

    curve = draw_loss(Path(report["folder"]) / "metrics", unicode=(sys.stdout.encoding or "").lower().startswith("utf"))
    if curve:
        with suppress(OSError):  # nobody reads any more
            click.echo(curve)
