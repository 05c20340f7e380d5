"""``--set KEY=VALUE``: account settings on the command line."""

from __future__ import annotations

import click


def settings_option(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """The settings given, as often as the option was; the last one of a key wins."""
    settings = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{text!r} is not KEY=VALUE", ctx, param)
        settings[name] = value
    return settings
