"""The machines each cloud rents for training, and which of them a job gets when it names none.

instances("vertex", accelerator="A100")        every A100, whatever its size
rows_of("vertex", "n1-standard-8")             that machine bare, and with each accelerator it may carry
choose("sagemaker", "A100-80GB", 8).instance   the smallest that fits, with the reason
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from cloudtrain.catalog.accelerators import meant
from cloudtrain.catalog.tables import CLOUDS, Row, number, rows
from cloudtrain.errors import either

_LEAST_VCPUS = 4
"""For a node with accelerators. Google warns of smaller hosts: agents take up to 40 % of the memory, logs may stop."""

_LEAST_VCPUS_CPU = 2


class Instance(NamedTuple):
    """A machine type of one cloud; on Vertex AI's N1 one such row for every accelerator and count it may carry."""

    provider: str
    name: str
    """As the cloud spells it."""
    accelerator: str | None
    """Our spelling; None: a machine without."""
    accelerators: int
    accelerator_memory_gib: float | None
    """Of one accelerator, as its source gives it."""
    native_accelerator: str
    """What a Vertex AI request calls the accelerator; empty elsewhere."""
    vcpus: int
    memory_gib: float
    network_gbps: float | None
    """Of the whole machine, where a fixed rate is published; None for "up to" rates and unknown ones."""
    rdma: str
    """EFA, InfiniBand, GPUDirect-TCPX, GPUDirect-TCPXO, RDMA, or empty."""
    local_disk_gib: int | None
    """The instance store that comes with the machine; None: none, or not known."""
    source: str
    as_of: str
    rdma_gbps: float | None = None
    """Of the machine's RDMA network, where it is another one than ``network_gbps`` is of."""
    purpose: str = ""
    """general, compute, memory, burstable; gpu or neuron for machines with accelerators."""
    on_demand: bool = True
    """False: rented as interruptible or queued capacity only."""
    note: str = ""
    """What else is to be said of the row."""


class Choice(NamedTuple):
    """A machine, and why this one."""

    instance: Instance
    reason: str


class NoInstance(LookupError):
    """No machine fits; the message says what there is."""


def instances(provider: str | None = None, *, accelerator: str | None = None) -> tuple[Instance, ...]:
    """Machines of one cloud or of all, cloud by cloud, smallest first.

    ``accelerator`` is a question: ``A100`` means its two sizes. Raises UnknownAccelerator.
    """
    clouds = CLOUDS if provider is None else (provider,)
    found = tuple(row for cloud in clouds for row in _of(cloud))
    if accelerator is None:
        return found
    names = {chip.name for chip in meant(accelerator)}
    return tuple(row for row in found if row.accelerator in names)


def rows_of(provider: str, name: str) -> tuple[Instance, ...]:
    """The rows of a machine type, fewest accelerators first; none if the catalogue does not hold it."""
    return tuple(row for row in _of(provider) if row.name == name)


def choose(
    provider: str, accelerator: str | None, count: int, *, processes: int = 1, memory_gib: float = 0, spot: bool = False
) -> Choice:
    """The smallest machine for a node: ``count`` accelerators and ``processes`` processes. Raises NoInstance.

    It has exactly that accelerator and at least as many; fewest accelerators first, then vCPU, then memory, then the
    order of the data file. Without an accelerator it is a general-purpose machine. ``memory_gib`` is the least memory.
    """
    if accelerator is None:
        return _smallest_without(provider, processes, memory_gib)
    having = [row for row in _of(provider) if row.accelerator == accelerator]
    fitting = [row for row in having if row.accelerators >= count and row.vcpus >= max(_LEAST_VCPUS, count, processes)]
    if not fitting:
        raise NoInstance(_what_there_is(provider, accelerator, count, processes, having))
    fitting = [row for row in fitting if row.memory_gib >= memory_gib]
    if not fitting:
        raise NoInstance(f"{provider} has no machine with {count} x {accelerator} and {memory_gib:g} GiB of memory")
    best = fitting[0]
    if not best.on_demand and not spot:
        raise NoInstance(_not_on_demand(best, fitting))
    return Choice(best, _why(best, count))


@cache
def _of(provider: str) -> tuple[Instance, ...]:
    """The cloud's rows, smallest first; equal ones keep the order of the file, where the preferred one comes first."""
    if provider not in CLOUDS:
        raise ValueError(f"no machines of {provider!r} here; there are those of {', '.join(CLOUDS)}")
    found = [_instance(provider, row) for row in rows(f"instances_{provider}")]
    return tuple(sorted(found, key=lambda row: (row.accelerators, row.vcpus, row.memory_gib)))


def _instance(provider: str, row: Row) -> Instance:
    disk = number(row["local_disk_gb"])
    return Instance(
        provider=provider,
        name=row["instance_type"],
        accelerator=row["accelerator"] or None,
        accelerators=int(row["accelerators"]),
        accelerator_memory_gib=number(row["accelerator_memory_gib"]),
        native_accelerator=row["native_accelerator"],
        vcpus=int(row["vcpus"]),
        memory_gib=float(row["memory_gib"]),
        network_gbps=number(row["network_gbps"]),
        rdma=row["rdma"],
        local_disk_gib=None if disk is None else int(disk * 10**9 / 2**30),
        source=row["source"],
        as_of=row["as_of"],
        rdma_gbps=number(row["rdma_gbps"]),
        purpose=row["purpose"],
        on_demand=row["on_demand"] == "yes",
        note=row["note"],
    )


def _smallest_without(provider: str, processes: int, memory_gib: float) -> Choice:
    least = max(_LEAST_VCPUS_CPU, processes)
    general = [row for row in _of(provider) if row.accelerator is None and row.purpose == "general"]
    for row in general:
        if row.vcpus >= least and row.memory_gib >= memory_gib:
            memory = f" and {memory_gib:g} GiB" if memory_gib else ""
            return Choice(row, f"smallest general-purpose type with at least {least} vCPU{memory}: {_host(row)}")
    largest = general[-1]
    if largest.vcpus >= least:
        raise NoInstance(f"{provider} has no general-purpose type with {memory_gib:g} GiB of memory here")
    raise NoInstance(
        f"{provider}'s largest general-purpose type here is {largest.name} with {largest.vcpus} vCPU; "
        f"{processes} processes are too many for one node"
    )


def _why(row: Instance, count: int) -> str:
    if row.accelerators == count:
        return f"smallest with {count} x {row.accelerator}: {_host(row)}"
    return f"smallest with at least {count} x {row.accelerator}: it has {row.accelerators}; {_host(row)}"


def _host(row: Instance) -> str:
    return f"{row.vcpus} vCPU, {row.memory_gib:g} GiB"


def _what_there_is(provider: str, accelerator: str, count: int, processes: int, having: list[Instance]) -> str:
    if not having:
        others = [cloud for cloud in CLOUDS if any(row.accelerator == accelerator for row in _of(cloud))]
        elsewhere = f" ({' and '.join(others)} {'has' if len(others) == 1 else 'have'})" if others else ""
        known = dict.fromkeys(row.accelerator for row in _of(provider) if row.purpose == "gpu" and row.accelerator)
        return f"{provider} has no {accelerator}{elsewhere}; it has {', '.join(known)}"
    sizes = either(dict.fromkeys(str(row.accelerators) for row in having))
    most = max(having, key=lambda row: row.accelerators)  # the smallest of them, as they are sorted
    text = f"{provider} has {accelerator} {sizes} per node ({most.name})"
    if count > most.accelerators:
        return f"{text}; {count} is too many"
    return f"{text}; none has a vCPU for each of {processes} processes"


def _not_on_demand(best: Instance, fitting: list[Instance]) -> str:
    larger = next((row for row in fitting if row.on_demand), None)
    instead = f", or name a larger one: resources.instance: {larger.name} ({_has(larger)})" if larger else ""
    return f"{best.provider} has {_has(best)} as {best.name}, which {best.note}: set spot.enabled{instead}"


def _has(row: Instance) -> str:
    return f"{row.accelerators} x {row.accelerator}"
