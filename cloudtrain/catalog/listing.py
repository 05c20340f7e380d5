"""What ``cloudtrain catalog`` reports: the catalogue's rows as plain records, complete with source and date."""

from __future__ import annotations

from typing import Any

from cloudtrain.catalog.accelerators import accelerators
from cloudtrain.catalog.instances import Instance, instances
from cloudtrain.catalog.prices import REFERENCE, Price, price, reference_price, regions_with_prices
from cloudtrain.catalog.sagemaker_images import of_region
from cloudtrain.catalog.tables import CLOUDS, Row, rows
from cloudtrain.catalog.vertex_images import registry

HOME_REGIONS = {"sagemaker": "us-east-1", "vertex": "us-central1", "azureml": "eastus"}
"""Where prices are shown of, if no region is asked for."""

Record = dict[str, Any]


def machines(provider: str | None, accelerator: str | None, least: int) -> list[Record]:
    """Machines with every price known of them. Raises UnknownAccelerator."""
    found = instances(provider, accelerator=accelerator)
    return [_machine(row) for row in found if row.accelerators >= least]


def chips() -> list[Record]:
    """Accelerators, and how many of one a node can have on each cloud."""
    found = []
    for chip in accelerators():
        per_node = {cloud: _counts(cloud, chip.name) for cloud in CLOUDS}
        found.append({**chip._asdict(), "aliases": list(chip.aliases), "per_node": per_node})
    return found


def images(provider: str | None, region: str | None = None) -> list[Record]:
    """Every image that a job may get by its torch, one record each for machines with and without an accelerator.

    With a region of the provider's the images that are there, with their registry. Raises NoImage.
    """
    listed = {"sagemaker": _sagemaker, "vertex": _vertex, "azureml": _azureml}
    return [record for cloud in CLOUDS if provider in (None, cloud) for record in listed[cloud](region)]


def _machine(row: Instance) -> Record:
    regions = regions_with_prices(row.provider)
    known = [(region, price(row.provider, region, row)) for region in regions]
    bare = [(region, reference_price(row.provider, region, row)) for region in regions]
    return {
        **row._asdict(),
        "prices": [_priced(region, found) for region, found in known if found],
        "reference_prices": [{**_priced(region, found), "what": REFERENCE} for region, found in bare if found],
    }


def _priced(region: str, found: Price) -> Record:
    return {"region": region, **found._asdict()}


def _counts(cloud: str, name: str) -> list[int]:
    return sorted({row.accelerators for row in instances(cloud) if row.accelerator == name})


def _sagemaker(region: str | None) -> list[Record]:
    prefix, table = of_region(region) if region else ("", rows("images_sagemaker"))
    newest = [row for row in table if row["account_known"] == "yes"][-1]
    return [
        _image("sagemaker", row, kind, _in(prefix, f"{row['repository']}:{row[tag]}"), row is newest)
        for row in table
        for kind, tag in (("gpu", "gpu_tag"), ("cpu", "cpu_tag"))
    ]


def _vertex(region: str | None) -> list[Record]:
    host = registry(region) if region else ""
    table = rows("images_vertex")
    return [
        _image("vertex", row, kind, _in(host, f"vertex-ai/training/{row[tag]}"), row is table[-1])
        for row in table
        for kind, tag in (("gpu", "gpu_tag"), ("cpu", "cpu_tag"))
        if row[tag]
    ]


def _azureml(_: str | None) -> list[Record]:
    found = []
    for row in rows("images_azureml"):
        default = not row["wheels"] or row["accelerator"] == "cpu"
        span = row["torch_from"] if not row["wheels"] else f"{row['torch_from']} to below {row['torch_before']}"
        record = _image("azureml", {**row, "torch": span}, row["accelerator"], row["image"], default)
        found.append({**record, "built_by": "conda, when first used" if row["wheels"] else None})
    return found


def _in(host: str, image: str) -> str:
    return f"{host}/{image}" if host else image


def _image(provider: str, row: Row, kind: str, image: str, default: bool) -> Record:
    ends = row.get("patches_end") or None
    gone = row.get("available_until") or None
    return {
        "provider": provider,
        "torch": row["torch"],
        "for": kind,
        "image": image,
        "default": default,
        "cuda": (row["cuda"] or None) if kind == "gpu" else None,
        "patches_end": ends,
        "available_until": gone,
        "over": any(end is not None and end < row["as_of"] for end in (ends, gone)),
        "account_presumed": row.get("account_known") == "no",
        "source": row["source"],
        "as_of": row["as_of"],
    }
