"""The container image: the job's, or the newest prebuilt one, which is out of support and said to be."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from cloudtrain.providers.base import Chosen, at_value
from cloudtrain.spec.problems import shown

if TYPE_CHECKING:
    from cloudtrain.catalog.instances import Instance
    from cloudtrain.job import Job
    from cloudtrain.spec.problems import Path

# [host[:port]/]name[/name...][:tag][@digest], as Docker reads it.
_REFERENCE = (
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?/)?"
    r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-fA-F]{32,})?"
)


def is_reference(text: str) -> bool:
    """Whether an image can be pulled by this text."""
    return re.fullmatch(_REFERENCE, text) is not None


class Image(NamedTuple):
    """The image of every node, and what is to be said of it."""

    uri: str
    chosen: tuple[Chosen, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[tuple[Path, str], ...] = ()


def image_of(job: Job, region: str, instance: Instance | None) -> Image:
    """The job's own image, or one of the catalogue."""
    named = job.environment.image_for("vertex")
    return _named(job, named) if named else _from_catalogue(job, region, instance)


def _named(job: Job, uri: str) -> Image:
    if not is_reference(uri):
        text = f"{shown(uri)} is no image reference such as europe-docker.pkg.dev/project/repository/image:tag"
        return Image(uri, problems=((at_value(("environment", "image"), job.environment.image, "vertex"), text),))
    torch = job.environment.torch
    return Image(uri, notes=(f"environment.torch: that {uri} holds {torch} is not checked",) if torch else ())


def _from_catalogue(job: Job, region: str, instance: Instance | None) -> Image:
    from cloudtrain.catalog.images import NoImage, image_for

    try:
        found = image_for("vertex", region=region, torch=job.environment.torch, instance=instance)
    except NoImage as error:
        field = "torch" if job.environment.torch else "image"
        return Image("", problems=((("environment", field), str(error)),))
    return Image(found.uri, (Chosen("environment.image", found.uri, found.reason),), found.notes)
