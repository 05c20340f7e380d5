"""``cloudtrain bundle``: what code ships with a job, why something does not, and the archive of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloudtrain.errors import SpecError

if TYPE_CHECKING:
    from cloudtrain.bundle import Bundle

_BIGGEST = 5


@click.command()
@click.argument("job", metavar="JOB", type=click.Path(path_type=Path))
@click.option("--list", "listed", is_flag=True, help="Show every file that ships; x marks what is executable.")
@click.option("--why", metavar="PATH", help="Say whether PATH, as seen from the code folder, ships, and why if not.")
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Write a .tar.gz of what ships.")
@click.option("--json", "as_json", is_flag=True, help="Report as JSON.")
def command(job: Path, listed: bool, why: str | None, output: Path | None, as_json: bool) -> None:
    """Show or write what code ships with the job file JOB."""
    from cloudtrain.job import Job
    from cloudtrain.providers.shipping import no_code

    loaded = Job.load(job)
    folder, left_out = loaded.code_folder, no_code(loaded)
    if why is not None:
        if listed or output is not None:
            raise SpecError("--why answers one question; it does not go with --list or --output")
        return _say_why(folder, why, as_json, left_out)
    bundle = _bundle(folder, output, left_out)
    report = _report(bundle, listed, output)
    click.echo(json.dumps(report, indent=2) if as_json else _text(report))
    return None


def _bundle(folder: Path, output: Path | None, left_out: dict[str, str]) -> Bundle:
    from cloudtrain.bundle import explain, scan

    if output is not None and _inside(output, folder) and explain(folder, _real(output), no_code=left_out) is None:
        raise SpecError(
            f"{output} lies in the code folder and would ship with the next run",
            hint=f"Write it elsewhere, or add {output.name} to .cloudtrainignore.",
        )
    bundle = scan(folder, no_code=left_out)
    if output is not None:
        from cloudtrain.bundle import write_archive

        write_archive(bundle, output)
    return bundle


def _inside(path: Path, folder: Path) -> bool:
    return _real(path).is_relative_to(folder.resolve())


def _real(path: Path) -> Path:
    return path.parent.resolve() / path.name


def _report(bundle: Bundle, listed: bool, output: Path | None) -> dict[str, Any]:
    biggest = sorted(bundle.files, key=lambda file: (-file.size, file.path))[:_BIGGEST]
    report: dict[str, Any] = {
        "folder": str(bundle.folder),
        "digest": bundle.digest,
        "count": len(bundle.files),
        "size": bundle.size,
        "reread": bundle.reread,
        "biggest": [{"path": file.path, "size": file.size} for file in biggest],
    }
    if listed:
        report["files"] = [
            {"path": file.path, "size": file.size, "executable": file.executable, "sha256": file.sha256}
            for file in bundle.files
        ]
    if output is not None:
        report["archive"] = {"path": str(output), "size": output.stat().st_size}
    return report


def _text(report: dict[str, Any]) -> str:
    from cloudtrain.bundle import bytes_text, printable

    lines = [
        f"{'x' if file['executable'] else ' '} {file['size']:>14,}  {file['path']}" for file in report.get("files", [])
    ]
    files = "1 file" if report["count"] == 1 else f"{report['count']:,} files"
    lines.append(f"{files}, {bytes_text(report['size'])}, from {printable(report['folder'])}")
    lines.append(f"digest sha256:{report['digest']}")
    if "files" not in report and report["biggest"]:
        lines.append("biggest:")
        lines += [f"  {bytes_text(file['size']):>14}  {file['path']}" for file in report["biggest"]]
    if "archive" in report:
        lines.append(f"wrote {report['archive']['path']}, {bytes_text(report['archive']['size'])}")
    return "\n".join(lines)


def _ships(folder: Path, path: str) -> str:
    return "ships" if (folder / path).exists() else "is not there; nothing would leave it out"


def _say_why(folder: Path, path: str, as_json: bool, left_out: dict[str, str]) -> None:
    from cloudtrain.bundle import explain, printable

    reason = explain(folder, path, no_code=left_out)
    if as_json:
        rule = None if reason is None else {"file": reason.file, "line": reason.line, "pattern": reason.pattern}
        text = None if reason is None else str(reason)
        click.echo(json.dumps({"path": path, "ships": reason is None, "reason": text, "rule": rule}, indent=2))
    else:
        click.echo(f"{printable(path)}: {reason or _ships(folder, path)}")
