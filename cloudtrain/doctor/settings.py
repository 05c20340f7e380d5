"""The settings of a provider, each with the place where it was found. None of them is a secret."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from cloudtrain.errors import CloudtrainError
from cloudtrain.providers.questions import Check
from cloudtrain.settings import Settings, find_file, keys_of, settings_for


class Found(NamedTuple):
    """The settings as a job would have them."""

    settings: Settings
    """Placeholders, where they could not be read."""
    checks: tuple[Check, ...]
    is_any: bool
    """Whether anybody has given one, or has tried to."""


def found(provider: str, folder: Path, given: Mapping[str, str]) -> Found:
    """The settings for a job in ``folder``; what is wrong with them is a check."""
    try:
        settings = settings_for(provider, folder, given=given)
    except CloudtrainError as error:
        wrong = Check("settings", "problem", error.message, error.hint or "mend it; `cloudtrain doctor` looks again")
        return Found(Settings(provider, {}), (wrong,), True)
    places = {name: _place(provider, name, folder, given) for name in settings}
    checks = tuple(_checks(settings, places))
    return Found(settings, checks, any(places.values()))


def _checks(settings: Settings, places: Mapping[str, str]) -> Iterator[Check]:
    """Optional ones that nobody gave are passed by."""
    provider = settings.provider
    for name, place in places.items():
        key = keys_of(provider)[name]
        if place:
            yield Check(f"setting {name}", "ok", f"{settings[name]}, from {place}")
        elif name in settings.missing:
            variable = f"CLOUDTRAIN_{provider}_{name}".upper()
            how = f"put it into cloudtrain.toml, section [{provider}], or set {variable}, or give --set {name}=..."
            yield Check(f"setting {name}", "problem", f"not set: {key.about}", how)
        elif key.default:
            yield Check(f"setting {name}", "ok", f"{settings[name]}, which is the default")


def _place(provider: str, name: str, folder: Path, given: Mapping[str, str]) -> str:
    """``--set``, a variable, or FILE:LINE, whichever wins; "" for nowhere."""
    for option in (f"{provider}.{name}", name):
        if given.get(option):
            return f"--set {option}"
    variable = f"CLOUDTRAIN_{provider}_{name}".upper()
    if os.environ.get(variable):
        return variable
    file = find_file(folder)
    line = _line(file, provider, name) if file else None
    return "" if line is None else f"{file}:{line}"


def _line(file: Path, section: str, name: str) -> int | None:
    """The line of a key in a file that has been read as TOML before; that of its section for other ways to write it."""
    quoted = {word: rf"[\"']?{re.escape(word)}[\"']?" for word in (section, name)}
    header = re.compile(rf"\s*\[\s*{quoted[section]}\s*\]")
    inside = re.compile(rf"\s*{quoted[name]}\s*=\s*(?P<value>.*)")
    outside = re.compile(rf"\s*{quoted[section]}\s*(\.\s*{quoted[name]}\s*=|=.*\b{re.escape(name)}\b)\s*(?P<value>.*)")
    here = at_top = None
    for number, text in enumerate(file.read_text("utf-8-sig", "replace").splitlines(), 1):
        if text.lstrip().startswith("["):
            here, at_top = (number if header.match(text) else None), False
        match = inside.match(text) if here else None if at_top is False else outside.match(text)
        if match and match["value"].split("#")[0].strip() not in ('""', "''"):
            return number
    return None
