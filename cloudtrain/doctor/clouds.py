"""One cloud: its settings and packages, who signs in, and what then answers."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cloudtrain.doctor import packages
from cloudtrain.doctor.asking import answered, late, together
from cloudtrain.doctor.settings import Found, found
from cloudtrain.errors import CloudtrainError
from cloudtrain.providers.questions import Check, Signed
from cloudtrain.providers.registry import EXTRAS, NAMES
from cloudtrain.providers.vendor import Broken, importing

if TYPE_CHECKING:
    from cloudtrain.providers.questions import Doctor

_LOADING = threading.Lock()
"""Packages that are imported by two threads at once get in each other's way (seen: KeyError, CPython 3.11)."""
JOB = "job.yaml"


def examined(provider: str, folder: Path, given: Mapping[str, str], *, asked: bool) -> list[Check]:
    """All lines about a cloud. ``asked``: it was named; one that was not, and is not used from here, has one line."""
    known = found(provider, folder, given)
    if provider not in NAMES:
        return [*known.checks, Check("service", "not checked", "doctor knows the services of our own providers only")]
    doctor = cast("Doctor", import_module(f"cloudtrain.providers.{provider}.doctor"))
    traces = list(doctor.traces())
    if not asked and not known.is_any and not traces:
        return [_not_set_up(provider)]
    there = _loaded(provider, doctor)
    if there.verdict == "problem":
        skipped = Check("service", "not checked", "without the packages nothing can be asked")
        return [*known.checks, there, *_traced(traces), skipped]
    return [*known.checks, there, *_asked_of(doctor, known, folder, given)]


def _not_set_up(provider: str) -> Check:
    there = "are installed" if packages.any_installed(provider) else f"are not installed: {EXTRAS[provider]}"
    return Check(
        provider,
        "not checked",
        f"not set up: no setting and no credentials found, its packages {there}",
        f"`cloudtrain doctor --provider {provider}` says what it needs",
    )


def _traced(traces: list[str]) -> list[Check]:
    seen = Check("credentials", "not checked", f"there are {', '.join(traces)}")
    return [seen] if traces else []


def _loaded(provider: str, doctor: Doctor) -> Check:
    """Versions, and whether they can be loaded."""
    check = packages.installed(provider)
    try:
        with _LOADING, importing():
            doctor.load()
    except Broken as error:
        return Check("packages", "problem", f"cannot be loaded: {error}", f"install them anew: {EXTRAS[provider]}")
    except ImportError as error:
        return check if check.verdict == "problem" else Check("packages", "problem", str(error), EXTRAS[provider])
    return check if check.verdict != "problem" else check._replace(verdict="warning")


def _asked_of(doctor: Doctor, known: Found, folder: Path, given: Mapping[str, str]) -> list[Check]:
    settings = known.settings
    signed = together({"credentials": lambda: doctor.sign_in(settings)})["credentials"]
    if not isinstance(signed, Signed):
        signed = Signed((late("credentials", signed),))
    if signed.caller is None:
        return [*signed.checks, Check("service", "not checked", "without credentials nothing can be asked")]
    native = _native(settings.provider, folder, given)
    questions = doctor.questions(settings, signed.caller, native)
    return [*signed.checks, *answered(questions, settings.missing)]


def _native(provider: str, folder: Path, given: Mapping[str, str]) -> Mapping[str, Any] | None:
    """The request of the job file in this folder, for its image and machines; None if there is none, or a wrong one:
    that is for `cloudtrain validate` to say."""
    from cloudtrain.rendering.request import render

    if not (folder / JOB).is_file():
        return None
    try:
        return render(folder / JOB, provider, settings=given).native
    except CloudtrainError:
        return None
