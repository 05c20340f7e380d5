"""``cloudtrain validate``: everything that is wrong with a job file, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from cloudtrain.cli.settings_option import refuse_nobodys, settings_option
from cloudtrain.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudtrain.bundle import Bundle
    from cloudtrain.job import Job
    from cloudtrain.spec.problems import Problem


@click.command()
@click.argument("files", metavar="JOB...", nargs=-1, required=True, type=click.Path())
@click.option(
    "--provider",
    "providers",
    multiple=True,
    metavar="P",
    help="Check for this cloud, too: sagemaker, vertex, azureml; may be repeated.",
)
@settings_option
@click.option("--json", "as_json", is_flag=True, help="Report as JSON: an object, or a list of them for several files.")
@click.pass_context
def command(
    ctx: click.Context, files: tuple[str, ...], providers: tuple[str, ...], settings: dict[str, str], as_json: bool
) -> None:
    """Check job files, and that the code they name is there. Every problem has its line and column; data that are not
    here are a remark, since they may be elsewhere.

    With --provider the native request is made and held against the service's own schema and rules, without an account
    or network: what the service would refuse is found here.

    Exit code 0: all are valid; 2: at least one is not.
    """
    providers = tuple(dict.fromkeys(map(_known, providers)))
    if settings and not providers:
        raise SpecError("--set goes with --provider")
    refuse_nobodys(settings, clouds=len(providers))
    reports = [_checked(file, providers, settings) for file in files]
    if as_json:
        _print_json(reports)
    for report in reports if not as_json else []:
        _print(report)
    ctx.exit(2 if any(report.problems for report in reports) else 0)


class _Report(NamedTuple):
    file: str
    job: Job | None
    problems: tuple[Problem, ...]
    notes: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()


def _known(provider: str) -> str:
    from cloudtrain.providers.registry import known

    return known(provider)


def _checked(file: str, providers: tuple[str, ...], settings: dict[str, str]) -> _Report:
    from cloudtrain.job import Job
    from cloudtrain.spec.problems import JobFileError

    try:
        job = Job.load(file)
    except JobFileError as error:
        return _Report(file, None, error.problems)
    report = _Report(file, job, job.check_files(), tuple(_absent_data(job)), providers)
    return _checked_for_clouds(report, job, settings) if providers and not report.problems else report


def _absent_data(job: Job) -> Iterator[str]:
    from cloudtrain.spec.fields import is_local

    for name, channel in job.data.items():
        uri = channel.uri_for("local")
        if uri is not None and is_local(uri) and not (place := job.folder / uri.removeprefix("file://")).exists():
            yield f"data.{name}: {place} is not there, which a run here needs (or --data {name}=PATH)"


def _checked_for_clouds(report: _Report, job: Job, settings: dict[str, str]) -> _Report:
    from cloudtrain.providers.shipping import bundle_of

    try:
        bundle = bundle_of(job)
    except SpecError as error:
        return report._replace(problems=_told(job, error))
    for provider in report.providers:
        problems, notes = _checked_for(job, provider, bundle, settings)
        report = report._replace(problems=(*report.problems, *problems), notes=(*report.notes, *notes))
    return report


def _checked_for(
    job: Job, provider: str, bundle: Bundle, settings: dict[str, str]
) -> tuple[tuple[Problem, ...], list[str]]:
    from cloudtrain.providers.checking import check_request
    from cloudtrain.rendering.request import request_for

    try:
        request = request_for(job, provider, bundle, settings=settings)
    except SpecError as error:
        return _told(job, error), []
    checked = check_request(job, request)
    notes = [*request.notes, *([checked.skipped] if checked.skipped else [])]
    return checked.problems, [f"{provider}: {note}" for note in notes]


def _told(job: Job, error: SpecError) -> tuple[Problem, ...]:
    """Settings, or code that cannot ship, are problems like others: the other files are still to be looked at."""
    from cloudtrain.spec.problems import JobFileError, Problem

    if isinstance(error, JobFileError):
        return error.problems
    return (Problem(str(job.file), 0, 0, "", " ".join(str(error).split())),)


def _print(report: _Report) -> None:
    for problem in report.problems:
        click.echo(str(problem), err=True)
    for note in report.notes:
        click.echo(f"{report.file}: note: {note}", err=True)
    if report.job is not None and not report.problems:
        click.echo(f"{report.file}: {_understood(report.job, report.providers)}")


def _understood(job: Job, providers: tuple[str, ...]) -> str:
    nodes = job.resources.nodes
    machines = f"{nodes} node{'s' if nodes > 1 else ''} x {job.processes} process{'es' if job.processes > 1 else ''}"
    where = f", here and on {', '.join(providers)}" if providers else ""
    return f"valid{where}: {job.name} runs {job.start} on {machines}"


def _print_json(reports: list[_Report]) -> None:
    import json

    found = [
        {
            "file": report.file,
            "valid": not report.problems,
            "problems": [problem.as_dict() for problem in report.problems],
            "notes": list(report.notes),
        }
        for report in reports
    ]
    click.echo(json.dumps(found[0] if len(found) == 1 else found, indent=2))
