"""What is installed of an extra, by what cloudtrain's own metadata say that it needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import metadata
from typing import NamedTuple

from cloudtrain.providers.questions import Check

_NEED = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?\s*(?P<versions>[^;]*);.*\bextra == ['\"](?P<extra>[^'\"]+)['\"]"
)
_LEAST = re.compile(r">=\s*([0-9.]+)")
_BELOW = re.compile(r"<\s*([0-9.]+)")


class Need(NamedTuple):
    """A package of an extra."""

    name: str
    least: str
    below: str


def installed(extra: str, *, needed: bool = True) -> Check:
    """Versions of the extra's packages; with ``needed`` a missing one is a problem, else a warning."""
    line = f"pip install 'cloudtrain[{extra}]'"
    name = "packages" if needed else f"extra {extra}"
    try:
        needs = list(_needs(extra))
    except metadata.PackageNotFoundError:
        return Check(name, "not checked", "cloudtrain itself is not installed as a package", line)
    found, lacking = [], []
    for need in needs:
        version = _version(need.name)
        if version is None:
            lacking.append(f"{need.name} is missing")
        elif flaw := _flaw(version, need):
            lacking.append(f"{need.name} {version} is {flaw}")
        else:
            found.append(f"{need.name} {version}")
    if lacking:
        return Check(name, "problem" if needed else "warning", ", ".join([*lacking, *found]), line)
    return Check(name, "ok", ", ".join(found))


def any_installed(extra: str) -> bool:
    """Whether one package of the extra is there."""
    try:
        return any(_version(need.name) for need in _needs(extra))
    except metadata.PackageNotFoundError:
        return False


def _needs(extra: str) -> Iterator[Need]:
    for line in metadata.requires("cloudtrain") or ():
        found = _NEED.match(line)
        if found and found["extra"] == extra and found["name"] != "cloudtrain":
            least, below = _LEAST.search(found["versions"]), _BELOW.search(found["versions"])
            yield Need(found["name"], least[1] if least else "", below[1] if below else "")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _flaw(version: str, need: Need) -> str:
    if need.least and _numbers(version) < _numbers(need.least):
        return f"older than {need.least}"
    if need.below and _numbers(version) >= _numbers(need.below):
        return f"not older than {need.below}"
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    """As far as it is of numbers: 2.9.0+cpu, 3rc1. Zeros at the end do not count."""
    found = re.match(r"[0-9]+(\.[0-9]+)*", version)
    numbers = [int(part) for part in found[0].split(".")] if found else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
