"""``cloudtrain submit``: the job on a cloud, or in the background of this machine."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloudtrain.cli.settings_option import settings_option
from cloudtrain.cli.types import Numbers
from cloudtrain.errors import SpecError

if TYPE_CHECKING:
    from cloudtrain.providers.base import Request
    from cloudtrain.record.observer import Observer
    from cloudtrain.runs.numbering import Outlook
    from cloudtrain.runs.run import Run
    from cloudtrain.runs.submission import Prepared


@click.command()
@click.argument("job", metavar="JOB", type=click.Path(path_type=Path))
@click.option("--provider", metavar="P", required=True,
              help="sagemaker, vertex or azureml; local: this machine, in the background.")  # fmt: skip
@click.option("--follow", is_flag=True, help="Show the output of all ranks until the end, and exit as the run does.")
@click.option("--ranks", type=Numbers("ranks"), help="With --follow: the output of these ranks only, such as 0,3.")
@click.option("--new", is_flag=True, help="Start another run though this very job is running there.")
@click.option("--dry-run", is_flag=True, help="Look at everything, the ledger too, and send nothing.")
@settings_option
@click.option("--quiet", is_flag=True, help="Print the run's id only; with --follow show the end only.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="How the run stands as JSON on standard output, with --follow its end; all else on standard error.",
)
def command(
    job: Path,
    provider: str,
    follow: bool,
    ranks: frozenset[int] | None,
    new: bool,
    dry_run: bool,
    settings: dict[str, str],
    quiet: bool,
    as_json: bool,
) -> None:
    """Submit the job file JOB: what `cloudtrain render` shows is what is sent.

    \b
    cloudtrain submit job.yaml --provider vertex
    cloudtrain submit job.yaml --provider azureml --follow
    cloudtrain submit job.yaml --provider local

    It may be repeated: the same job, code and settings are not started again while they run, and code that lies there
    already is not sent again. Ctrl-C while following leaves the job running.

    Exit codes: 0 submitted, with --follow the run's own; 2 the job or the command line is wrong, 3 something is missing
    here, or the cloud cannot be reached, 4 the cloud refused.
    """  # fmt: skip
    if dry_run and (follow or new):
        raise SpecError(f"--dry-run sends nothing; {'--follow' if follow else '--new'} does not go with it")
    if ranks is not None and not follow:
        raise SpecError("--ranks goes with --follow")
    from cloudtrain.job import Job
    from cloudtrain.runs.submission import prepare

    prepared = prepare(Job.load(job), provider, settings=settings)
    if dry_run:
        return _show(prepared, str(job), quiet, as_json)
    request = prepared.request()
    if not quiet:
        _remark(request, last=False)
    run = _send(prepared, new, quiet, as_json)
    if not quiet:
        _warn(request)
    if follow:
        from cloudtrain.cli.following import follow as follow_run

        follow_run(run, ranks=ranks, quiet=quiet, as_json=as_json)
    return say_begun(run, quiet, as_json)


def _send(prepared: Prepared, new: bool, quiet: bool, as_json: bool) -> Run:
    from cloudtrain.cli.progress import bar
    from cloudtrain.runs.submission import send

    try:
        with bar("uploading", shown=not quiet and not as_json) as progress:
            return send(prepared, new=new, observer=notes(quiet), progress=progress)
    except KeyboardInterrupt:
        click.echo("\ncloudtrain: interrupted while submitting: the job may be there, or not. The same command again "
                   "takes up what there is.", err=True)  # fmt: skip
        raise SystemExit(130) from None


def notes(quiet: bool) -> Observer:
    """Says on standard error what there is to say before a run has begun."""
    from cloudtrain.display.plain import PlainDisplay
    from cloudtrain.record.observer import Observer

    return Observer() if quiet else PlainDisplay(None, None)


def say_begun(run: Run, quiet: bool, as_json: bool) -> None:
    """What was started, from the ledger, where all that was answered is kept."""
    from cloudtrain.cli.following import print_json
    from cloudtrain.runs.ledger import Ledger
    from cloudtrain.runs.status import RunStatus

    with Ledger.open() as ledger:
        entry = ledger.entry(run.run_id)
    assert entry  # it has just been begun
    if as_json:
        print_json(RunStatus.of_entry(entry))
    elif quiet:
        click.echo(run.run_id)
    else:
        from cloudtrain.wording import printable

        where = "in the background" if run.provider == "local" else f"on {run.provider} as {entry.native_name}"
        click.echo(f"run {run.run_id}: {entry.state} {printable(where)}")
        if entry.url:
            click.echo(f"  {'url':<8} {printable(entry.url)}")
        for what, verb in (("follow", "logs {} --follow"), ("status", "status {}"), ("stop", "stop {}")):
            click.echo(f"  {what:<8} cloudtrain {verb.format(run.run_id)}")


def _remark(request: Request, *, last: bool) -> None:
    """``last``: nothing comes behind it in which a warning would be lost."""
    for choice in request.chosen:
        click.echo(f"chose {choice.field}: {choice.value} ({choice.reason})", err=True)
    for note in request.notes:
        if note not in request.warnings:
            click.echo(f"note: {note}", err=True)
    if last:
        _warn(request)


def _warn(request: Request) -> None:
    for warning in request.warnings:
        click.echo(f"warning: {warning}", err=True)


def _show(prepared: Prepared, job: str, quiet: bool, as_json: bool) -> None:
    from cloudtrain.bundle import bytes_text
    from cloudtrain.runs.numbering import outlook

    expected = outlook(prepared.first.run_id)
    run_id = prepared.context(expected.number).run_id
    request, bundle = prepared.request(expected.number), prepared.bundle
    if as_json:
        report: dict[str, Any] = {
            "run_id": run_id, "going_on": expected.going_on is not None, "provider": request.provider,
            "name": request.name, "account": dict(request.account), "request": request.native,
            "bundle": {"digest": bundle.digest, "count": len(bundle.files), "size": bundle.size},
            "ships": [shipped._asdict() for shipped in request.ships],
            "chosen": [choice._asdict() for choice in request.chosen], "notes": list(request.notes),
            "warnings": list(request.warnings),
        }  # fmt: skip
        click.echo(json.dumps(report, indent=1))
    elif quiet:
        click.echo(run_id)
    else:
        _remark(request, last=True)
        click.echo(_would(expected, run_id, request))
        click.echo(f"  code     {len(bundle.files):,} files, {bytes_text(bundle.size)}")
        for shipped in request.ships:
            click.echo(f"  {shipped.kind:<8} {shipped.to}")
        if request.provider != "local":
            click.echo(f"  request  cloudtrain render {shlex.quote(job)} --provider {request.provider}")


def _would(expected: Outlook, run_id: str, request: Request) -> str:
    if expected.going_on:
        state = expected.going_on.state
        return f"would take up run {run_id} of this job, {state} when it was last seen; nothing was sent"
    before = f"; run {expected.before.run_id} of this job {expected.before.state} before" if expected.before else ""
    return f"would submit {run_id} to {request.provider} as {request.name}{before}; nothing was sent"
