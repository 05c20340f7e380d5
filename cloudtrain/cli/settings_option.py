"""``--set KEY=VALUE``: account settings on the command line, the same wherever they are taken."""

from __future__ import annotations

import click

from cloudtrain.errors import SpecError


def _parsed(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """The settings given, as often as the option was; the last one of a key wins."""
    settings = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{text!r} is not KEY=VALUE", ctx, param)
        settings[name] = value
    return settings


settings_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    callback=_parsed,
    help="An account setting, such as region=eu-west-1, or vertex.region=us-east4 where several clouds are asked for.  "
    "[default: from cloudtrain.toml]",
)


def refuse_nobodys(settings: dict[str, str], clouds: int) -> None:
    """With several clouds a key alone does not say whose it is. Raises SpecError."""
    if clouds > 1 and any("." not in name for name in settings):
        raise SpecError("say whose setting it is, such as --set vertex.region=us-east4")
