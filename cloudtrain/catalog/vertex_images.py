"""Vertex AI: Google's prebuilt training images, which are out of support; an image of one's own is the better way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudtrain.catalog.images import Image, NoImage, too_old_or_new, version
from cloudtrain.catalog.tables import Row, rows
from cloudtrain.errors import either

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudtrain.catalog.instances import Instance

_OWN = "build one of your own and name it in environment.image"


def pick(region: str, torch: str | None, instance: Instance) -> Image:
    """The prebuilt image with that torch, by default the newest there is."""
    tag = "gpu_tag" if instance.accelerator else "cpu_tag"
    there = [row for row in rows("images_vertex") if row[tag]]
    row = _asked(torch, there) if torch else max(there, key=lambda row: version(row["torch"]))
    if instance.accelerator and (reason := too_old_or_new(instance, row["cuda"])):
        raise NoImage(f"Google's prebuilt image with torch {row['torch']}: {reason}: {_OWN}")
    reason = "Google's prebuilt image with torch" if torch else "newest prebuilt image of Google:"
    uri, warnings = f"{registry(region)}/vertex-ai/training/{row[tag]}", tuple(_past_its_end(row))
    notes = (*warnings, "its tag is :latest, so the image may change between runs")
    return Image(uri, row["torch"], f"{reason} {row['torch']}", notes, warnings=warnings)


def _asked(torch: str, there: list[Row]) -> Row:
    """Only the series is published of a prebuilt image, so only a series can be asked for."""
    for row in there:
        if row["torch"] == torch:
            return row
    has = either([row["torch"] for row in there])
    raise NoImage(f"Google has no prebuilt image with torch {torch}; it has {has}, no patch release published: {_OWN}")


def registry(region: str) -> str:
    """The host of Google's images for a region. Raises NoImage."""
    known = rows("registries_vertex")
    for row in known:
        if region.startswith(row["region_prefix"]):
            return row["host"]
    prefixes = ", ".join(row["region_prefix"] for row in known)
    raise NoImage(f"no registry of Google's images is known for the region {region!r}; regions begin with {prefixes}")


def _past_its_end(row: Row) -> Iterator[str]:
    if row["available_until"] < row["as_of"]:
        yield (
            f"PAST ITS END: Google's published availability of this image ended {row['available_until']}; "
            f"it may be gone when the job starts. Recommended: {_OWN}"
        )
