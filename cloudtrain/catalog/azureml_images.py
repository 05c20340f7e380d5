"""Azure ML: the curated image where it holds the torch that is wanted, else a base image and a conda environment.

The wheels come from PyTorch's own index for the CUDA of the base image, at an exact version. That keeps the CUDA that
the curated image proves to run on these nodes, and lets every torch of the builds that PyTorch publishes be asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudtrain.catalog.images import OWN, Image, NoImage, too_old_or_new, unsure, version
from cloudtrain.catalog.tables import Row, rows

if TYPE_CHECKING:
    from cloudtrain.catalog.instances import Instance

_TORCH = "2.8"
"""The default, that of the curated image; the same on machines without a GPU."""

_PYTHON = "3.11"
_NUMPY = "1.26.4"
"""One that every torch from 2.1 on runs with under that Python."""


def pick(_: str, torch: str | None, instance: Instance) -> Image:
    """The curated image on GPUs, unless another torch is asked for; base image and conda otherwise. Of any region."""
    wanted = torch or _TORCH
    row = _row(wanted, "gpu" if instance.accelerator else "cpu")
    if instance.accelerator and (reason := too_old_or_new(instance, row["cuda"])):
        raise NoImage(f"torch {wanted} for Azure ML: {reason}: {OWN}")
    doubt = unsure(instance, row["cuda"]) if instance.accelerator else None
    made = _conda(row, wanted) if row["wheels"] else _curated(row)
    return made if doubt is None else Image(made.uri, made.torch, made.reason, (*made.notes, doubt), made.conda)


def _row(torch: str, kind: str) -> Row:
    known = [row for row in rows("images_azureml") if row["accelerator"] == kind]
    wanted = version(torch)
    for row in known:
        if _is_release(wanted) and version(row["torch_from"]) <= wanted < version(row["torch_before"]):
            return row
    oldest, before = known[0]["torch_from"], known[0]["torch_before"]
    for row in known[1:]:
        oldest = min(oldest, row["torch_from"], key=version)
        before = max(before, row["torch_before"], key=version)
    raise NoImage(
        f"no image for Azure ML is known with torch {torch}; releases from {oldest} to below {before} "
        f"can be had, such as {_TORCH}: {OWN}"
    )


def _is_release(wanted: tuple[int, ...]) -> bool:
    return len(wanted) in (2, 3)


def _curated(row: Row) -> Image:
    torch = row["torch_from"]
    return Image(row["image"], torch, f"Azure ML's curated image with torch {torch} and CUDA {row['cuda']}")


def _conda(row: Row, torch: str) -> Image:
    exact = torch if torch.count(".") == 2 else f"{torch}.0"
    if row["cuda"]:
        why = f"no curated image with torch {torch} is known: base image with CUDA {row['cuda']} and torch {exact}"
    else:
        why = f"no curated image without CUDA is known: base image and torch {exact} for CPUs"
    notes = (
        "the base image carries no fixed version, so it may change between runs",
        f"the service builds the environment before its first job; that a torch {exact} exists is not checked here",
    )
    return Image(row["image"], exact, why, notes, _environment(row, exact))


def _environment(row: Row, torch: str) -> dict[str, Any]:
    packages = [
        f"--extra-index-url https://download.pytorch.org/whl/{row['wheels']}",
        f"torch=={torch}+{row['wheels']}",
        f"numpy=={_NUMPY}",
    ]
    return {
        "name": "cloudtrain",
        "channels": ["conda-forge"],
        "dependencies": [f"python={_PYTHON}", "pip", {"pip": packages}],
    }
