"""``cloudtrain init``: start a project from a template."""

from __future__ import annotations

import click


@click.command()
@click.argument("folder", metavar="DIR", required=False, type=click.Path())
@click.option(
    "--template", "-t", metavar="NAME", default="digits", show_default=True, help="The template to start from."
)
@click.option("--list", "list_them", is_flag=True, help="Show the templates and do nothing else.")
@click.option("--json", "as_json", is_flag=True, help="Report as JSON.")
def command(folder: str | None, template: str, list_them: bool, as_json: bool) -> None:
    """Start a project in DIR, which must be new or empty, from a template that runs as it is."""
    if list_them:
        _list(as_json)
    elif folder is None:
        raise click.UsageError("name the folder to make, such as: cloudtrain init digits")
    else:
        _create(template, folder, as_json)


def _list(as_json: bool) -> None:
    from cloudtrain.starting_points import starting_points

    found = {name: point.description for name, point in starting_points().items()}
    if as_json:
        import json

        click.echo(json.dumps([{"name": name, "description": text} for name, text in found.items()], indent=2))
    else:
        width = max(map(len, found), default=0)
        for name, text in found.items():
            click.echo(f"{name:{width}}  {text}")


def _create(template: str, folder: str, as_json: bool) -> None:
    from pathlib import Path

    from cloudtrain.starting_points import create

    create(template, Path(folder))
    commands = _next(folder, prepare=Path(folder, "prepare.py").is_file())
    if as_json:
        import json

        click.echo(json.dumps({"folder": folder, "template": template, "next": commands}, indent=2))
    else:
        click.echo("\n  ".join([f"Made {folder} from the template {template}. Next:", *commands]))


def _next(folder: str, *, prepare: bool) -> list[str]:
    import os
    import shlex

    quoted = f'"{folder}"' if os.name == "nt" else shlex.quote(folder)
    return [
        *([] if folder == "." else [f"cd {quoted}"]),
        *(["python prepare.py"] if prepare else []),
        "cloudtrain validate job.yaml",
        "cloudtrain run job.yaml --nodes 2 --processes 2",
    ]
