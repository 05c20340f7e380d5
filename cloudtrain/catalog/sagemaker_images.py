"""SageMaker: AWS's deep learning containers with PyTorch, from the registry account of the region."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudtrain.catalog.images import OWN, Image, NoImage, is_meant, too_old_or_new, unsure, version
from cloudtrain.catalog.tables import Row, rows
from cloudtrain.errors import did_you_mean, either

if TYPE_CHECKING:
    from cloudtrain.catalog.instances import Instance


def pick(region: str, torch: str | None, instance: Instance) -> Image:
    """The newest image that fits, of those whose registry account is known unless another is asked for."""
    registry, there = of_region(region)
    row, reason = _asked(torch, there, instance) if torch else _default(there, instance)
    tag = row["gpu_tag"] if instance.accelerator else row["cpu_tag"]
    return Image(f"{registry}/{row['repository']}:{tag}", row["torch"], reason, tuple(_notes(row, instance)))


def of_region(region: str) -> tuple[str, list[Row]]:
    """The registry of a region and the images that are there. Raises NoImage."""
    account = _account(region)
    there = [row for row in rows("images_sagemaker") if row["torch"] not in account["without"].split()]
    return f"{account['account']}.dkr.ecr.{region}.{account['dns_suffix']}", there


def _account(region: str) -> Row:
    accounts = rows("accounts_sagemaker")
    for row in accounts:
        if row["region"] == region:
            return row
    names = [row["region"] for row in accounts]
    near = did_you_mean(region, names) or f"; known regions: {', '.join(names)}"
    raise NoImage(f"no registry of AWS's images is known for the region {region!r}{near}: {OWN}")


def _asked(torch: str, there: list[Row], instance: Instance) -> tuple[Row, str]:
    found = [row for row in there if is_meant(torch, row["torch"])]
    if not found:
        has = either([row["torch"] for row in there])
        raise NoImage(f"SageMaker has no image with torch {torch} here; it has {has}: {OWN}")
    row = max(found, key=_age)
    if instance.accelerator and (reason := too_old_or_new(instance, row["cuda"])):
        raise NoImage(f"torch {row['torch']}: {reason}; {_fitting(there, instance)}: {OWN}")
    return row, f"AWS's image with torch {row['torch']}"


def _default(there: list[Row], instance: Instance) -> tuple[Row, str]:
    known = [row for row in there if row["account_known"] == "yes"]
    newest, fitting = max(known, key=_age), [row for row in known if _serves(row, instance)]
    if not fitting:
        raise NoImage(f"SageMaker has no image that serves {instance.accelerator} here: {OWN}")
    row = max(fitting, key=_age)
    if row is newest:
        return row, f"newest torch whose registry account is known: {row['torch']}"
    return row, f"newest torch that surely serves {instance.accelerator}: {row['torch']}, built with CUDA {row['cuda']}"


def _serves(row: Row, instance: Instance) -> bool:
    """Surely: images whose CUDA is not known count only for accelerators that need none in particular."""
    return not instance.accelerator or not (too_old_or_new(instance, row["cuda"]) or unsure(instance, row["cuda"]))


def _fitting(there: list[Row], instance: Instance) -> str:
    names = [row["torch"] for row in there if row["cuda"] and _serves(row, instance)]
    return f"it is served by {either(names)}" if names else "none here serves it"


def _notes(row: Row, instance: Instance) -> list[str]:
    notes = []
    if row["account_known"] != "yes":
        notes.append(
            f"the account of the repository {row['repository']!r} is presumed to be that of AWS's older images"
        )
    if row["patches_end"] and row["patches_end"] < row["as_of"]:
        notes.append(f"patches of this image ended {row['patches_end']}")
    elif not row["patches_end"]:
        notes.append("an old image; until when it was patched is not known")
    if instance.accelerator and (doubt := unsure(instance, row["cuda"])):
        notes.append(doubt)
    return notes


def _age(row: Row) -> tuple[int, ...]:
    return version(row["torch"])
