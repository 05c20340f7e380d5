"""``cloudtrain doctor``: what is there, what is missing, and what to do next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cloudtrain.cli.settings_option import refuse_nobodys, settings_option
from cloudtrain.cli.types import json_option

if TYPE_CHECKING:
    from cloudtrain.providers.questions import Check

_MACHINE = "this machine"
_EXIT_PROBLEM = 3


@click.command()
@click.option("--provider", "providers", multiple=True, metavar="P",
              help="Look at this cloud: sagemaker, vertex, azureml; may be repeated.  [default: all]")  # fmt: skip
@settings_option
@json_option
@click.pass_context
def command(ctx: click.Context, providers: tuple[str, ...], settings: dict[str, str], as_json: bool) -> None:
    """Look at this machine and the clouds: what is installed, which settings and credentials are found and where, and
    whether bucket, role, workspace, image and quota answer. Says what to do next. Shows no secret and changes nothing.

    Settings are those of a job in this folder; with a job.yaml here its image and its machines' quota are looked at,
    too. A cloud that was not asked for, and for which nothing is set up here, has one line.

    Verdicts: ok; warning: most of it works; problem: a submit would fail; not checked: it cannot be told from here.

    Exit code 0: no problem; 3: at least one.
    """
    from cloudtrain.providers.registry import NAMES, known

    asked = tuple(dict.fromkeys(map(known, providers)))
    refuse_nobodys(settings, clouds=len(asked or NAMES))
    found = _looked_at(asked or NAMES, settings, asked=bool(asked))
    if as_json:
        _print_json(found)
    else:
        _print(found)
    ctx.exit(_EXIT_PROBLEM if _problems(found) else 0)


def _looked_at(providers: tuple[str, ...], settings: dict[str, str], *, asked: bool) -> dict[str, list[Check]]:
    """The machine's part and all clouds side by side. Packages of the vendors' print and warn of many things that are
    nobody's business here."""
    import logging
    import warnings
    from functools import partial

    from cloudtrain.doctor import machine
    from cloudtrain.doctor.asking import late, together
    from cloudtrain.doctor.clouds import examined

    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    asks = {_MACHINE: machine.checks}
    asks |= {name: partial(examined, name, Path(), settings, asked=asked) for name in providers}
    answers = together(asks, seconds=180)
    return {
        name: [check.tidy() for check in ([late(name, answer)] if isinstance(answer, Exception) else answer)]
        for name, answer in answers.items()
    }


def _problems(found: dict[str, list[Check]]) -> int:
    return sum(check.verdict == "problem" for checks in found.values() for check in checks)


def _print(found: dict[str, list[Check]]) -> None:
    verdicts = max(len(check.verdict) for checks in found.values() for check in checks)
    names = max(len(check.name) for checks in found.values() for check in checks)
    for of, checks in found.items():
        click.echo(of)
        for check in checks:
            click.echo(f"  {check.verdict:{verdicts}}  {check.name:{names}}  {check.found}".rstrip())
            if check.next:
                click.echo(f"  {'':{verdicts}}  {'':{names}}  -> {check.next}")
    problems = _problems(found)
    click.echo(f"{problems or 'no'} problem{'' if problems == 1 else 's'}")


def _print_json(found: dict[str, list[Check]]) -> None:
    import json

    checks = [
        {"of": "machine" if of == _MACHINE else of, **check._asdict()} for of, rows in found.items() for check in rows
    ]
    click.echo(json.dumps({"ok": not _problems(found), "checks": checks}, indent=1))
