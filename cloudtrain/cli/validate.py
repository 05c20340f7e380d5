"""``cloudtrain validate``: everything that is wrong with a job file, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.spec.problems import Problem


@click.command()
@click.argument("files", metavar="JOB...", nargs=-1, required=True, type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Report as JSON: an object, or a list of them for several files.")
@click.pass_context
def command(ctx: click.Context, files: tuple[str, ...], as_json: bool) -> None:
    """Check job files, and that the files they name are there. Every problem has its line and column.

    Exit code 0: all are valid; 2: at least one is not.
    """
    reports = [(file, *_checked(file)) for file in files]
    if as_json:
        _print_json([(file, problems) for file, _, problems in reports])
    for file, job, problems in reports if not as_json else []:
        for problem in problems:
            click.echo(str(problem), err=True)
        if job is not None and not problems:
            click.echo(f"{file}: {_understood(job)}")
    ctx.exit(2 if any(problems for _, _, problems in reports) else 0)


def _checked(file: str) -> tuple[Job | None, tuple[Problem, ...]]:
    from cloudtrain.job import Job
    from cloudtrain.spec.problems import JobFileError

    try:
        job = Job.load(file)
    except JobFileError as error:
        return None, error.problems
    return job, job.check_files()


def _understood(job: Job) -> str:
    nodes = job.resources.nodes
    machines = f"{nodes} node{'s' if nodes > 1 else ''} x {job.processes} process{'es' if job.processes > 1 else ''}"
    return f"valid: {job.name} runs {job.start} on {machines}"


def _print_json(reports: list[tuple[str, tuple[Problem, ...]]]) -> None:
    import json

    found = [
        {"file": file, "valid": not problems, "problems": [problem.as_dict() for problem in problems]}
        for file, problems in reports
    ]
    click.echo(json.dumps(found[0] if len(found) == 1 else found, indent=2))
