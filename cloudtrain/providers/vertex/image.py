"""The container image: the job's, or the newest prebuilt one, which is out of support and said to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudtrain.providers.image import Image, image_of_catalogue, is_reference, refused_image, unchecked_torch
from cloudtrain.spec.problems import shown

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.machine import Machine


def image_of(job: Job, region: str, machine: Machine) -> Image:
    """The job's own image, or one of the catalogue."""
    named = job.environment.image_for("vertex")
    return _named(job, named) if named else image_of_catalogue(job, "vertex", region, machine)


def _named(job: Job, uri: str) -> Image:
    if not is_reference(uri):
        text = f"{shown(uri)} is no image reference such as europe-docker.pkg.dev/project/repository/image:tag"
        return refused_image(job, "vertex", text)
    return Image(uri, notes=unchecked_torch(job, "vertex", uri))
