"""The container image of every node: the job's own, or a current one of the catalogue that fits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from cloudtrain.catalog.images import NoImage, image_for
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


def is_reference(text: str) -> bool:
    """Whether an image can be pulled by this text."""
    return re.fullmatch(_REFERENCE, text) is not None


def image_of_catalogue(job: Job, provider: Provider, region: str, machine: Machine) -> Image:
    """The one for the torch that the job asks for, or for none in particular."""
    if machine.problems and not machine.name:
        return Image("")  # which one fits depends on a machine that there is not
    try:
        found = image_for(provider, region=region, torch=job.environment.torch, instance=machine.instance)
    except NoImage as error:
        field = "torch" if job.environment.torch else "image"
        return Image("", problems=((("environment", field), str(error)),))
    return Image(found.uri, (Chosen("environment.image", found.uri, found.reason),), found.notes, conda=found.conda)


def refused_image(job: Job, provider: Provider, flaw: str) -> Image:
    """The job's own image, which is none for this provider."""
    return Image("", problems=((at_value(("environment", "image"), job.environment.image, provider), flaw),))


def unchecked_torch(job: Job, uri: str) -> tuple[str, ...]:
    """What is to be said where the job names both an image and a torch."""
    torch = job.environment.torch
    return (f"environment.torch: {uri} is taken as it is; that it holds torch {torch} is not checked",) if torch else ()
