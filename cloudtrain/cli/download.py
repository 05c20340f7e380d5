"""``cloudtrain download``: what a run has left, into a folder."""

from __future__ import annotations

from pathlib import Path

import click

from cloudtrain.cli.types import json_option, run_argument


@click.command()
@run_argument
@click.option("--to", metavar="DIR", type=click.Path(path_type=Path), help="Where to.  [default: called as the run]")
@click.option(
    "--only",
    metavar="KIND,...",
    help="Of model, output, metrics, outputs, outputs/NAME, checkpoints.  [default: all but checkpoints]",
)
@click.option("--force", is_flag=True, help="Replace files that lie there already and differ.")
@json_option
def command(run: str, to: Path | None, only: str | None, force: bool, as_json: bool) -> None:
    """Bring what RUN has left: DIR/model, DIR/output, DIR/metrics, DIR/outputs/NAME, DIR/checkpoints.

    \b
    cloudtrain download latest --only model
    cloudtrain download digits-3f9c --to results

    May be repeated: what is there already and the same stays, and files that differ are never replaced without --force.
    """  # fmt: skip
    from cloudtrain.cli.progress import bar
    from cloudtrain.runs.addressing import find_run

    found = find_run(run)
    kinds = None if only is None else [kind.strip() for kind in only.split(",") if kind.strip()]
    folder = to if to is not None else Path(found.run_id)
    with bar("downloading", shown=not as_json) as progress:
        folders = found.download(folder, kinds, progress, force=force)
    if as_json:
        import json

        report = {"run_id": found.run_id, "folder": str(folder), "folders": [str(path) for path in folders]}
        click.echo(json.dumps(report, indent=1))
        return
    for path in folders:
        click.echo(_summary(path))


def _summary(folder: Path) -> str:
    from cloudtrain.bundle import bytes_text, printable

    sizes = [file.stat().st_size for file in folder.rglob("*") if file.is_file()]
    files = "1 file" if len(sizes) == 1 else f"{len(sizes):,} files"
    return f"{printable(str(folder))}: {files}, {bytes_text(sum(sizes))}"
