"""The container image of every node: the job's own, or a current one of the catalogue that fits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from cloudtrain.catalog.images import NoImage, image_for
from cloudtrain.catalog.instances import instances
from cloudtrain.errors import did_you_mean
from cloudtrain.providers.base import Chosen, at_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudtrain.job import Job
    from cloudtrain.providers.machine import Machine
    from cloudtrain.spec.fields import Provider
    from cloudtrain.spec.problems import Path

# [host[:port]/]name[/name...][:tag][@digest], as Docker reads it.
_REFERENCE = (
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?/)?"
    r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-fA-F]{32,})?"
)


class Image(NamedTuple):
    """An image, and what is to be said of it."""

    uri: str
    chosen: tuple[Chosen, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[tuple[Path, str], ...] = ()
    conda: Mapping[str, Any] | None = None
    """Azure ML: the environment that the service builds on top of it."""
    warnings: tuple[str, ...] = ()
    """Those of the notes that must not be overlooked."""


def is_reference(text: str) -> bool:
    """Whether an image can be pulled by this text."""
    return re.fullmatch(_REFERENCE, text) is not None


def image_of_catalogue(job: Job, provider: Provider, region: str, machine: Machine) -> Image:
    """The one for the torch that the job asks for, or for none in particular."""
    if machine.problems and not machine.name:
        return Image("")  # which one fits depends on a machine that there is not
    try:
        found = image_for(provider, region=region, torch=job.environment.torch_for(provider), instance=machine.instance)
    except NoImage as error:
        return Image("", problems=(_no_image(job, provider, machine, str(error)),))
    chosen = (Chosen("environment.image", found.uri, found.reason),)
    return Image(found.uri, chosen, found.notes, conda=found.conda, warnings=found.warnings)


def _no_image(job: Job, provider: Provider, machine: Machine, reason: str) -> tuple[Path, str]:
    """At the field that would have to be another for an image to fit."""
    if machine.instance is None:
        near = did_you_mean(machine.name, [row.name for row in instances(provider)])
        text = f"{machine.name} is not in the catalogue{near}: name an image that fits it in environment.image"
        return at_value(("resources", "instance"), job.resources.instance, provider), text
    return ("environment", "torch" if job.environment.torch_for(provider) else "image"), reason


def refused_image(job: Job, provider: Provider, flaw: str) -> Image:
    """The job's own image, which is none for this provider."""
    return Image("", problems=((at_value(("environment", "image"), job.environment.image, provider), flaw),))


def unchecked_torch(job: Job, provider: Provider, uri: str) -> tuple[str, ...]:
    """What is to be said where the job names both an image and a torch."""
    torch = job.environment.torch_for(provider)
    return (f"environment.torch: {uri} is taken as it is; that it holds torch {torch} is not checked",) if torch else ()
