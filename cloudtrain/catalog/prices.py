"""What an hour of a machine costs, where a dated source says so. None means unknown: it is never worked out.

``price`` is what the service itself bills for a node-hour. ``reference_price`` is the cloud's infrastructure list price
of the same hardware, without the managed service's fee: a lower bound to set beside an unknown price, never the price
of a job.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from cloudtrain.catalog.tables import Row, number, rows

if TYPE_CHECKING:
    from cloudtrain.catalog.instances import Instance

REFERENCE = "infrastructure list price, managed fee not included"


class Price(NamedTuple):
    """List prices of one machine in one region, before any discount by contract."""

    on_demand: float | None
    spot: float | None
    source: str
    as_of: str
    currency: str = "USD"
    per: str = "node-hour"


def price(provider: str, region: str, instance: Instance | str) -> Price | None:
    """What the service bills for the machine there; None where that is unknown.

    A name means the machine by itself: with a Vertex AI accelerator attached to an N1 host, ask with the Instance.
    """
    return _known("prices", provider, region, instance)


def reference_price(provider: str, region: str, instance: Instance | str) -> Price | None:
    """The infrastructure list price (REFERENCE) of the machine there; None where that is unknown."""
    return _known("reference_prices", provider, region, instance)


def regions_with_prices(provider: str) -> tuple[str, ...]:
    """Regions for which any price is known."""
    found = {key[1] for table in ("prices", "reference_prices") for key in _by_machine(table) if key[0] == provider}
    return tuple(sorted(found))


def _known(table: str, provider: str, region: str, instance: Instance | str) -> Price | None:
    if isinstance(instance, str):
        return _by_machine(table).get((provider, region, instance))
    # A row of an N1 host with accelerators: what is known is the price of the bare host.
    if instance.accelerators and instance.name.startswith("n1-"):
        return None
    return _by_machine(table).get((provider, region, instance.name))


@cache
def _by_machine(table: str) -> dict[tuple[str, str, str], Price]:
    return {(row["provider"], row["region"], row["instance_type"]): _price(row) for row in rows(table)}


def _price(row: Row) -> Price:
    return Price(number(row["on_demand"]), number(row["spot"]), row["source"], row["as_of"])
