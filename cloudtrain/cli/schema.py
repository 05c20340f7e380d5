"""``cloudtrain schema``: the JSON Schema of the job file."""

from __future__ import annotations

import click


@click.command()
def command() -> None:
    """Print the JSON Schema of the job file, for editors and other tools.

    With the YAML extension of VS Code: save the output as job.schema.json and put
    `# yaml-language-server: $schema=job.schema.json` on the first line of the job file.
    """
    import json

    from cloudtrain.spec.schema import job_file_schema

    click.echo(json.dumps(job_file_schema(), indent=2, ensure_ascii=False))
