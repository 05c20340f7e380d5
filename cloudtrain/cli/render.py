"""``cloudtrain render``: the native request of a cloud, offline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloudtrain.cli.settings_option import refuse_nobodys, settings_option
from cloudtrain.errors import SpecError

if TYPE_CHECKING:
    from cloudtrain.bundle import Bundle
    from cloudtrain.job import Job
    from cloudtrain.providers.base import Request
    from cloudtrain.rendering.compare import Column


@click.command()
@click.argument("job", metavar="JOB", type=click.Path(path_type=Path))
@click.option("--provider", metavar="P", help="sagemaker, vertex or azureml.")
@click.option("--all", "every", is_flag=True, help="All three side by side, with what was chosen and why.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["json", "yaml", "cli"]),
    default="json",
    show_default=True,
    help="cli: files and the vendor's own command, into --out.",
)
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path), help="Where -o cli writes to.")
@settings_option
@click.option("--attempt", type=click.IntRange(1), default=1, show_default=True, help="Which attempt of the run.")
@click.option("--quiet", is_flag=True, help="No remarks on standard error.")
@click.option("--json", "as_json", is_flag=True, help="With --all or -o cli: the report as JSON.")
def command(
    job: Path,
    provider: str | None,
    every: bool,
    output: str,
    out: Path | None,
    settings: dict[str, str],
    attempt: int,
    quiet: bool,
    as_json: bool,
) -> None:
    """Show the native request with which JOB is submitted: on standard output, and nothing else there.

    \b
    cloudtrain render job.yaml --provider vertex
    cloudtrain render job.yaml --provider sagemaker -o cli --out ../way-out
    cloudtrain render job.yaml --all

    Remarks (what was chosen and why, stale images, placeholders for missing settings) go to standard error, with --all
    behind the table. Needs no account and no network; only overrides are looked at with the vendor's package. Exit
    code 2: the job is wrong, or the provider cannot do it.
    """  # fmt: skip
    _refuse_odd(provider, every, output, out, as_json, settings)
    from cloudtrain.job import Job

    loaded = Job.load(job)
    if every:
        _show_all(loaded, settings, attempt, as_json)
    elif output == "cli":
        assert provider and out
        _export(loaded, provider, out, settings, attempt, quiet, as_json)
    else:
        assert provider
        request = _request(loaded, provider, settings, attempt)
        _remark(request, quiet)
        _print(request.native, output)


def _refuse_odd(
    provider: str | None, every: bool, output: str, out: Path | None, as_json: bool, settings: dict[str, str]
) -> None:
    if every == (provider is not None):
        raise SpecError("give --provider sagemaker, vertex or azureml; or --all for the three side by side")
    if every and output != "json":
        raise SpecError(f"--all shows all three as a table, or with --json; -o {output} goes with one --provider")
    if as_json and not every and output != "cli":
        raise SpecError("the request is printed as JSON anyway; --json is for the report of --all and of -o cli")
    refuse_nobodys(settings, clouds=3 if every else 1)
    if (output == "cli") != (out is not None):
        raise SpecError("-o cli and --out DIR go together: the files need a place")


def _request(job: Job, provider: str, settings: dict[str, str], attempt: int) -> Request:
    from cloudtrain.providers.shipping import bundle_of

    return _request_for(job, provider, bundle_of(job), settings, attempt)


def _request_for(job: Job, provider: str, bundle: Bundle, settings: dict[str, str], attempt: int) -> Request:
    from cloudtrain.rendering.request import request_for

    request = request_for(job, provider, bundle, settings=settings, attempt=attempt)
    if not job.overrides.get(provider):
        return request
    from cloudtrain.providers.checking import check_overrides

    unchecked = check_overrides(job, request)
    return request._replace(notes=(*request.notes, unchecked)) if unchecked else request


def _remark(request: Request, quiet: bool) -> None:
    if quiet:
        return
    for choice in request.chosen:
        click.echo(f"chose {choice.field}: {choice.value} ({choice.reason})", err=True)
    for note in request.notes:
        click.echo(f"{'warning' if note in request.warnings else 'note'}: {note}", err=True)


def _print(native: Any, output: str) -> None:
    if output == "yaml":
        from cloudtrain.providers.written import as_yaml

        click.echo(as_yaml(native, ascii_only=True), nl=False)
    else:
        click.echo(json.dumps(native, indent=2))


def _export(
    job: Job, provider: str, out: Path, settings: dict[str, str], attempt: int, quiet: bool, as_json: bool
) -> None:
    from cloudtrain.providers.shipping import bundle_of
    from cloudtrain.rendering.export import SCRIPT, export_to

    bundle = bundle_of(job)  # once: the request names the code by its digest
    request = _request_for(job, provider, bundle, settings, attempt)
    export = export_to(out, request, bundle)
    if as_json:
        report = {"provider": provider, "name": request.name, "folder": str(out), "commands": list(export.commands),
                  "files": sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()),
                  **_remarks(request)}  # fmt: skip
        click.echo(json.dumps(report, indent=2))
        return
    _remark(request, quiet)
    click.echo(f"wrote {out}; {out / SCRIPT} submits the job with these commands, run in that folder:")
    for line in export.commands:
        click.echo(f"  {line}")


def _show_all(job: Job, settings: dict[str, str], attempt: int, as_json: bool) -> None:
    from cloudtrain.rendering.compare import side_by_side

    columns = _columns(job, settings, attempt)
    if as_json:
        click.echo(json.dumps({column.provider: _as_data(column) for column in columns}, indent=2))
    else:
        click.echo(side_by_side(columns))
    if not any(column.request for column in columns):
        raise SystemExit(2)


def _columns(job: Job, settings: dict[str, str], attempt: int) -> list[Column]:
    from cloudtrain.providers.registry import NAMES
    from cloudtrain.providers.shipping import bundle_of
    from cloudtrain.rendering.compare import Column
    from cloudtrain.spec.problems import JobFileError

    bundle, columns = bundle_of(job), []
    for provider in NAMES:
        try:
            columns.append(Column(provider, _request_for(job, provider, bundle, settings, attempt), None))
        except JobFileError as error:
            columns.append(Column(provider, None, error))
    return columns


def _as_data(column: Column) -> dict[str, Any]:
    if column.error:
        return {"problems": [problem.as_dict() for problem in column.error.problems]}
    assert column.request
    return {"request": column.request.native, **_remarks(column.request)}


def _remarks(request: Request) -> dict[str, Any]:
    return {"chosen": [choice._asdict() for choice in request.chosen], "notes": list(request.notes),
            "warnings": list(request.warnings)}  # fmt: skip
