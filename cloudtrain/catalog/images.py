"""Which container image a job gets when it names none: a current one of the cloud's own that fits, or a refusal.

    image_for("sagemaker", region="eu-west-1", torch="2.8", instance=row).uri

What is known of each cloud's images is in ``images_<provider>.csv``, how one is picked in ``<provider>_images.py``.
Everything is decided on the dates of the data, never on today's: the same job gives the same request for ever.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from cloudtrain.catalog.tables import CLOUDS, Row, rows

if TYPE_CHECKING:
    from cloudtrain.catalog.instances import Instance

OWN = "name one in environment.image"


class Image(NamedTuple):
    """An image, and why this one."""

    uri: str
    torch: str
    """The version inside, as precisely as it is published."""
    reason: str
    notes: tuple[str, ...] = ()
    """What its user should know before relying on it."""
    conda: dict[str, Any] | None = None
    """Azure ML: the conda environment that the service builds on top of the image."""
    warnings: tuple[str, ...] = ()
    """Those of the notes that must not be overlooked."""


class NoImage(LookupError):
    """No image is known that fits; the message says what there is."""


def image_for(provider: str, *, region: str, torch: str | None, instance: Instance | None) -> Image:
    """The image of ``provider`` with that version of torch for that machine. Raises NoImage."""
    if provider not in CLOUDS:
        raise ValueError(f"no images of {provider!r} here; there are those of {', '.join(CLOUDS)}")
    if instance is None:
        raise NoImage(f"the machine type is not in the catalogue, so it is not known which image fits it: {OWN}")
    needs = needs_of(instance)
    if needs.get("refused"):
        raise NoImage(f"{instance.accelerator}: {needs['refused']}: {OWN}")
    return cast(Image, import_module(f"cloudtrain.catalog.{provider}_images").pick(region, torch, instance))


def needs_of(instance: Instance) -> Row:
    """What the machine's accelerator needs of an image; empty if nothing is known to be needed."""
    return next((row for row in rows("image_needs") if row["accelerator"] == instance.accelerator), {})


def version(text: str) -> tuple[int, ...]:
    """``2.10.0`` as numbers to compare; () for what is not made of numbers."""
    parts = text.split(".")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()


def is_meant(torch: str, known: str) -> bool:
    """Whether ``2.8`` or ``2.8.0`` asks for the known ``2.8.0``."""
    wanted = version(torch)
    return bool(wanted) and version(known)[: len(wanted)] == wanted


def too_old_or_new(instance: Instance, cuda: str) -> str | None:
    """Why an image with this CUDA cannot serve the machine's accelerator; None where it can, or nothing is known."""
    needs, has = needs_of(instance), version(cuda)
    if not has:
        return None
    if needs.get("cuda_from") and has < version(needs["cuda_from"]):
        return f"{instance.accelerator} needs CUDA {needs['cuda_from']} or later and this image has {cuda}"
    if needs.get("cuda_before") and has >= version(needs["cuda_before"]):
        return f"{instance.accelerator} needs an image before CUDA {needs['cuda_before']} and this one has {cuda}"
    return None


def unsure(instance: Instance, cuda: str) -> str | None:
    """A doubt about an image that may serve the machine's accelerator."""
    sure = needs_of(instance).get("sure_before")
    if sure and version(cuda) >= version(sure):
        return (
            f"PyTorch's own builds for CUDA {cuda} leave {instance.accelerator} out; "
            "whether this image's build has it is not known"
        )
    return None
