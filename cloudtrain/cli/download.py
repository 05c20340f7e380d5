"""``cloudtrain download``: what a run has left, into a folder."""

from __future__ import annotations

from pathlib import Path

import click

from cloudtrain.cli.types import json_option, run_argument


@click.command()
@run_argument
@click.option(
    "--to",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Where to.  [default: called as the run, and left out of the code that ships]",
)
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
    before = frozenset() if force or as_json else _files(folder)
    with bar("downloading", shown=not as_json) as progress:
        folders = found.download(to, kinds, progress, force=force)
    if as_json:
        import json

        report = {"run_id": found.run_id, "folder": str(folder), "folders": [str(path) for path in folders]}
        click.echo(json.dumps(report, indent=1))
        return
    for path in folders:
        click.echo(_summary(path, before))


def _summary(folder: Path, before: frozenset[Path]) -> str:
    """``before``: what was there, and so has stayed."""
    from cloudtrain.bundle import bytes_text, printable

    there = _files(folder)
    size = bytes_text(sum(file.stat().st_size for file in there))
    files = "1 file" if len(there) == 1 else f"{len(there):,} files"
    stayed = len(there & before)
    already = "" if not stayed else ", there already" if stayed == len(there) else f", {stayed:,} of them there already"
    return f"{printable(str(folder))}: {files}, {size}{already}"


def _files(folder: Path) -> frozenset[Path]:
    return frozenset(file for file in folder.rglob("*") if file.is_file())
