"""``cloudtrain catalog``: machines, accelerators, images and prices of the clouds, and what each can do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from cloudtrain.errors import SpecError

if TYPE_CHECKING:
    from cloudtrain.catalog.listing import Record

_REGION_ALONE = "--region goes with --provider: every cloud has regions of its own"

_provider = click.option("--provider", metavar="P", callback=lambda _, __, name: _known(name),
                         help="Of one cloud only: sagemaker, vertex or azureml.")  # fmt: skip
_as_json = click.option("--json", "as_json", is_flag=True, help="Report as JSON, every row with its source and date.")


@click.group()
def command() -> None:
    """Machines, accelerators, images and prices of the clouds, from dated public sources.

    Nothing here is asked of a cloud: it needs no account and no network. What no source gives is shown as unknown.
    """


@command.command("instances")
@click.option("--accelerator", metavar="A", help="With this one only; A100 means both of its sizes.")
@_provider
@click.option("--min-accelerators", metavar="N", type=click.IntRange(0), default=0, help="With at least N per node.")
@click.option("--region", metavar="R", help="With --provider: prices of this region.")
@_as_json
def instances_command(
    accelerator: str | None, provider: str | None, min_accelerators: int, region: str | None, as_json: bool
) -> None:
    """Machines that train jobs, with list prices."""
    from cloudtrain.catalog.accelerators import UnknownAccelerator
    from cloudtrain.catalog.listing import HOME_REGIONS, machines
    from cloudtrain.spec.problems import shown

    regions = _regions(provider, region) if region else HOME_REGIONS
    try:
        found = machines(provider, accelerator, min_accelerators)
    except UnknownAccelerator as error:
        raise SpecError(f"--accelerator: {shown(accelerator)} {error}") from None
    if as_json:
        _print_json(found)
    elif not found:
        click.echo("none")
    else:
        _print_instances(found, regions)


@command.command("accelerators")
@_as_json
def accelerators_command(as_json: bool) -> None:
    """Accelerators, by the names that job files use."""
    from cloudtrain.catalog.listing import chips
    from cloudtrain.catalog.tables import CLOUDS

    found = chips()
    if as_json:
        return _print_json(found)
    rows = [
        [chip["name"], _or(chip["memory_gib"], "unknown", "{} GiB"),
         *(", ".join(map(str, chip["per_node"][cloud])) or "-" for cloud in CLOUDS), ", ".join(chip["aliases"])]
        for chip in found
    ]  # fmt: skip
    _print_table(["name", "memory", *CLOUDS, "also written"], rows)
    click.echo("\nUnder a cloud: how many a node can have.")
    return None


@command.command("images")
@_provider
@click.option("--region", metavar="R", help="With --provider: what is there, with its registry.")
@_as_json
def images_command(provider: str | None, region: str | None, as_json: bool) -> None:
    """Images that jobs get when they name none, by the torch they ask for."""
    from cloudtrain.catalog.images import NoImage
    from cloudtrain.catalog.listing import images

    if region and provider is None:
        raise SpecError(_REGION_ALONE)
    try:
        found = images(provider, region)
    except NoImage as error:
        raise SpecError(f"--region: {error}") from None
    if as_json:
        return _print_json(found)
    rows = [
        [image["provider"], f"{image['torch']}{'*' if image['default'] else ''}", image["for"],
         _or(image["cuda"], "-" if image["for"] == "cpu" else "unknown"), _until(image), image["image"]]
        for image in found
    ]  # fmt: skip
    _print_table(["provider", "torch", "for", "CUDA", "maintained until", "image"], rows)
    click.echo("\n* what a job gets that names no torch, on machines that it serves")
    for cloud, text in _WHERE.items():
        if provider in (None, cloud) and not region:
            click.echo(f"{cloud}: {text}")
    _print_sources(found)
    return None


_WHERE = {
    "sagemaker": "ACCOUNT.dkr.ecr.REGION.SUFFIX/IMAGE; for the repository pytorch the account is presumed",
    "vertex": "us-, europe- or asia-docker.pkg.dev/IMAGE, by the region of the job",
    "azureml": "IMAGE as it stands; a range of torch is built on top of it with conda when first used",
}


@command.command("features")
@_provider
@click.option("--markdown", is_flag=True, help="The whole table, with how and why, for a page of documentation.")
@_as_json
def features_command(provider: str | None, markdown: bool, as_json: bool) -> None:
    """What becomes of every field of the job file on each cloud."""
    from cloudtrain.providers.registry import NAMES, capabilities

    if markdown and as_json:
        raise SpecError("--markdown and --json are two forms of the same: give one")
    clouds = [name for name in NAMES if provider in (None, name)]
    found = [{"provider": cloud, **row._asdict()} for cloud in clouds for row in capabilities(cloud)]
    if markdown:
        return _print_markdown(clouds, found)
    if as_json:
        return _print_json(found)
    if provider:
        _print_table(["field", "support", "how"], [[row["field"], row["support"], row["how"]] for row in found])
    else:
        support = {(row["field"], row["provider"]): row["support"] for row in found}
        fields = dict.fromkeys(row["field"] for row in found)
        _print_table(
            ["field", *clouds], [[field, *(support.get((field, cloud), "-") for cloud in clouds)] for field in fields]
        )
        click.echo("\nHow, and why what is refused is refused: cloudtrain catalog features --provider P")
    click.echo(_SUPPORT)
    return None


def _print_markdown(clouds: list[str], found: list[Record]) -> None:
    cells = {(row["field"], row["provider"]): f"**{row['support']}**: {row['how']}" for row in found}
    fields = dict.fromkeys(row["field"] for row in found)
    lines = [["field", *clouds], ["---"] * (1 + len(clouds))]
    lines += [[f"`{field}`", *(cells.get((field, cloud), "") for cloud in clouds)] for field in fields]
    for line in lines:
        click.echo(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |")


_SUPPORT = """
native    a field of the cloud's own request
launcher  done by launch.py on the nodes
client    travels with the job, for cloudtrain to keep while it follows the run: not kept yet
refused   an error that gives the reason"""


def _known(name: str | None) -> str | None:
    if name is not None:
        from cloudtrain.providers.registry import known

        known(name, ours=True)
    return name


def _regions(provider: str | None, region: str) -> dict[str, str]:
    """The region asked for, if prices of it are known; a region that nothing is known of is most likely misspelt."""
    from cloudtrain.catalog.prices import regions_with_prices

    if provider is None:
        raise SpecError(_REGION_ALONE)
    known = regions_with_prices(provider)
    if region not in known:
        raise SpecError(f"--region: no prices of {provider} in {region!r} are known; known: {', '.join(known)}")
    return {provider: region}


def _print_instances(found: list[Record], regions: dict[str, str]) -> None:
    from cloudtrain.catalog.prices import REFERENCE

    sources: dict[str, int] = {}
    rows = [[*_hardware(row), *_prices(row, regions[row["provider"]], sources)] for row in found]
    hardware = ["provider", "instance", "accelerators", "each", "vCPU", "memory", "network", "RDMA"]
    _print_table([*hardware, "USD/h", "bare USD/h"], rows)
    shown = {row["provider"] for row in found}
    where = ", ".join(f"{region} ({cloud})" for cloud, region in regions.items() if cloud in shown)
    click.echo(f"\nUSD/h: what the service bills for a node-hour on demand in {where}; a list price, to estimate with")
    click.echo(f"bare USD/h: {REFERENCE}; not the price of a job")
    for source, number in sources.items():
        click.echo(f"[{number}] {source}")
    for note in dict.fromkeys(f"{row['name']}: {row['note']}" for row in found if row["note"]):
        click.echo(note)
    click.echo("--json has the source and date of every row, and prices of other regions and of spot capacity.")


def _hardware(row: Record) -> list[str]:
    chip = f"{row['accelerators'] or '?'} x {row['accelerator']}" if row["accelerator"] else "-"
    each = "-" if not row["accelerator"] else _or(row["accelerator_memory_gib"], "unknown", "{:g} GiB")
    network = _or(row["network_gbps"], "-", "{:g} Gbps")
    rdma = f"{row['rdma'] or '-'}{_or(row['rdma_gbps'], '', ' {:g} Gbps')}"
    return [row["provider"], row["name"], chip, each, str(row["vcpus"]), f"{row['memory_gib']:g} GiB", network, rdma]


def _prices(row: Record, region: str, sources: dict[str, int]) -> Iterable[str]:
    """The price that the service bills and the bare one, each with the number of its source."""
    for kind in ("prices", "reference_prices"):
        known = next((found for found in row[kind] if found["region"] == region and found["on_demand"]), None)
        if known is None:
            yield "unknown" if kind == "prices" else "-"
        else:
            source = f"{known['source']}, {known['as_of'] or 'undated'}"
            yield f"{known['on_demand']:.4g} [{sources.setdefault(source, len(sources) + 1)}]"


def _until(image: Record) -> str:
    """The last day that its maker has named: of its availability, or else of its patches."""
    last = image["available_until"] or image["patches_end"] or "unknown"
    return f"{last}{' (over)' if image['over'] else ''}"


def _or(value: Any, unknown: str, form: str = "{}") -> str:
    return unknown if value is None else form.format(value)


def _print_sources(found: Iterable[Record]) -> None:
    click.echo("Sources:")
    for source in dict.fromkeys(f"{row['source']}, {row['as_of']}" for row in found):
        click.echo(f"  {source}")


def _print_json(found: list[Record]) -> None:
    click.echo(json.dumps(found, indent=2))


def _print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from cloudtrain.display.table import table

    for line in table(header, rows):
        click.echo(line)
