"""Which machine a job gets: the one it names, held against the catalogue, or the smallest that fits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from cloudtrain.catalog.instances import Instance, NoInstance, choose, instances, rows_of
from cloudtrain.catalog.network import network_settings
from cloudtrain.errors import did_you_mean
from cloudtrain.providers.base import Chosen, at_value
from cloudtrain.spec.fields import CLOUDS
from cloudtrain.spec.problems import shown

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.spec.fields import Provider
    from cloudtrain.spec.problems import Path

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
"""What any cloud's machine types are called."""


class Machine(NamedTuple):
    """The machine of every node, and what is to be said of it."""

    name: str
    instance: Instance | None
    """Its row of the catalogue; None where the job names a type that the catalogue does not hold."""
    chosen: tuple[Chosen, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[tuple[Path, str], ...] = ()


def machine_for(job: Job, provider: Provider) -> Machine:
    """The machine of every node of ``job``. Problems carry the path of the field that is wrong."""
    named = job.resources.instance_for(provider)
    machine = _named(job, provider, named) if named else _chosen(job, provider)
    return machine._replace(problems=(*machine.problems, *_processes(job, machine.instance)))


def network_of(job: Job, machine: Machine) -> dict[str, str]:
    """The variables that the machine's network wants between nodes."""
    return network_settings(machine.instance, job.resources.nodes) if machine.instance else {}


def network_choices(job: Job, machine: Machine) -> Iterator[Chosen]:
    """The same, as far as the job does not set them."""
    for name, value in network_of(job, machine).items():
        if name not in job.environment.env:
            yield Chosen(f"environment.env.{name}", value, f"network of {machine.name} between nodes")


def _chosen(job: Job, provider: Provider) -> Machine:
    resources = job.resources
    count = (resources.accelerators_per_node or 1) if resources.accelerator else 0
    memory = resources.shm_for(provider) or 0  # shared memory is memory
    try:
        choice = choose(
            provider,
            resources.accelerator,
            count,
            processes=job.processes,
            memory_gib=memory,
            spot=job.spot.enabled,
        )
    except NoInstance as error:
        path = ("resources", "accelerator" if resources.accelerator else "processes_per_node")
        return Machine("", None, problems=((path, str(error)),))
    chosen = Chosen("resources.instance", choice.instance.name, choice.reason)
    return Machine(choice.instance.name, choice.instance, (chosen,), _idle(job, choice.instance))


def _named(job: Job, provider: Provider, name: str) -> Machine:
    rows = rows_of(provider, name)
    if not rows and not re.fullmatch(_NAME, name):
        path = at_value(("resources", "instance"), job.resources.instance, provider)
        return Machine("", None, problems=((path, f"{shown(name)} is no name of a machine type"),))
    if not rows:
        return _unknown(job, provider, name)
    wanted = job.resources.accelerator
    count = job.resources.accelerators_per_node or (1 if wanted else 0)
    fitting = [row for row in rows if wanted in (None, row.accelerator) and row.accelerators >= count]
    if not fitting:
        has = " or ".join(_has(row) for row in rows)
        asked = f"{count} x {wanted}" if wanted else f"{count} accelerators"
        problem = ("resources", "instance"), f"{name} has {has}, and the job asks for {asked} per node"
        return Machine(name, rows[0], problems=(problem,))
    row = min(fitting, key=lambda row: row.accelerators)
    same = [other for other in fitting if other.accelerators == row.accelerators]
    if len(same) > 1:
        which = " or ".join(map(_has, same))
        problem = ("resources", "instance"), f"{name} may have {which}: say which in resources.accelerator"
        return Machine(name, row, problems=(problem,))
    return Machine(name, row, notes=_idle(job, row))


def _unknown(job: Job, provider: Provider, name: str) -> Machine:
    """A type that the catalogue has not: maybe newer than it, unless it is another cloud's."""
    path = at_value(("resources", "instance"), job.resources.instance, provider)
    for other in CLOUDS:
        if rows_of(other, name):
            return Machine("", None, problems=((path, f"{name} is a machine of {other}, not of {provider}"),))
    near = did_you_mean(name, [row.name for row in instances(provider)])
    return Machine(name, None, notes=(f"resources.instance: {name} is not in the catalogue; taken as written{near}",))


def _has(row: Instance) -> str:
    return f"{row.accelerators} x {row.accelerator}" if row.accelerator else "no accelerator"


def _idle(job: Job, row: Instance) -> tuple[str, ...]:
    """Paid for and not used: worth a line."""
    idle = row.accelerators - job.processes
    if idle <= 0:
        return ()
    advice = f"accelerators_per_node: {row.accelerators} uses all"
    return (f"{row.name} has {_has(row)}; {job.processes} per node are used, {idle} idle ({advice})",)


def _processes(job: Job, row: Instance | None) -> tuple[tuple[Path, str], ...]:
    """NCCL gives one accelerator to one rank and refuses two."""
    count = job.resources.accelerators_per_node or (1 if job.resources.accelerator else 0)
    if row is not None and row.accelerators:
        count = row.accelerators
    if count and job.processes > count:
        text = f"{job.processes} processes on {count} accelerators per node: every process needs one of its own"
        return ((("resources", "processes_per_node"), text),)
    return ()
