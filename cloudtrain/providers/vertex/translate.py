"""From a job to a Vertex AI CustomJob, in the JSON form of ``POST .../customJobs``. Pure.

    job -> machine, image, places -> environment -> worker pools -> CustomJob -> overrides -> fingerprint

All that is wrong is found before anything is built, and reported at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cloudtrain.providers.base import Chosen, Context, Request, Shipped, refuse
from cloudtrain.providers.features import refusals
from cloudtrain.providers.identity import fingerprint, native_name
from cloudtrain.providers.machine import Machine, machine_for, network_choices
from cloudtrain.providers.nodes import FINGERPRINT, launch_spec, launcher_channels
from cloudtrain.providers.overrides import overridden
from cloudtrain.providers.places import places_of
from cloudtrain.providers.reading import text
from cloudtrain.providers.vertex.account import ACCOUNT
from cloudtrain.providers.vertex.capabilities import CAPABILITIES
from cloudtrain.providers.vertex.environment import (
    PROJECT,
    environment_of,
    environment_problems,
    project_for_clients,
)
from cloudtrain.providers.vertex.image import image_of
from cloudtrain.providers.vertex.labels import labels_of, tag_problems
from cloudtrain.providers.vertex.ownership import ownership_problems
from cloudtrain.providers.vertex.places import mounted, place_problems
from cloudtrain.providers.vertex.pools import LEAST_DISK, accelerator_problems, disk_problems, variable, worker_pools
from cloudtrain.providers.vertex.reading import environment
from cloudtrain.providers.vertex.scheduling import DEFAULT_RUNTIME, repeat_notes, runtime_problems, scheduling_of
from cloudtrain.providers.vertex.secret import secret_problems

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.image import Image
    from cloudtrain.providers.places import Places
    from cloudtrain.spec.problems import Path


def translate(job: Job, context: Context) -> Request:
    """The CustomJob for one attempt of ``job``. Raises JobFileError with all that Vertex AI cannot do."""
    machine = machine_for(job, "vertex")
    image = image_of(job, context.settings["region"], machine)
    refuse(job, (*_problems(job, context, machine), *image.problems))
    places = places_of(job, context)
    spec = launch_spec(job, context, channels=launcher_channels(job, downloads=True))
    native = overridden(job, "vertex", _custom_job(job, context, machine, image.uri, places), ownership_problems)
    return Request(
        provider="vertex",
        name=native_name(context.run_id, context.attempt),
        native=_marked(native, fingerprint(native, spec)),
        spec=spec,
        ships=(Shipped("code", places.code), Shipped("spec", places.spec)),
        chosen=tuple(_chosen(job, context, machine, image)),
        notes=(*machine.notes, *image.notes, *_notes(job, native, machine)),
        account={name: context.settings[name] for name in ACCOUNT},
        warnings=image.warnings,
    )


def _problems(job: Job, context: Context, machine: Machine) -> Iterator[tuple[Path, str]]:
    yield from refusals(job, "vertex", CAPABILITIES)
    yield from machine.problems
    yield from accelerator_problems(job, machine)
    yield from disk_problems(job)
    yield from place_problems(job)
    yield from secret_problems(job)
    yield from tag_problems(job, context)
    yield from runtime_problems(job)
    yield from environment_problems(job, context, machine)


def _custom_job(job: Job, context: Context, machine: Machine, image: str, places: Places) -> dict[str, Any]:
    command = ["python3", "-u", f"{mounted(places.code)}launch.py"]
    environment = environment_of(job, context, machine, places)
    custom_job: dict[str, Any] = {
        "displayName": native_name(context.run_id, context.attempt),
        "jobSpec": {
            "workerPoolSpecs": worker_pools(job, machine, image, command, environment),
            "scheduling": scheduling_of(job),
            **_account(context),
            "baseOutputDirectory": {"outputUriPrefix": places.run},
        },
        "labels": labels_of(job, context),
    }
    if key := context.settings["kms_key"]:
        custom_job["encryptionSpec"] = {"kmsKeyName": key}
    return custom_job


def _account(context: Context) -> dict[str, str]:
    fields = {"serviceAccount": "service_account", "network": "network"}
    return {field: context.settings[name] for field, name in fields.items() if context.settings[name]}


def _marked(native: dict[str, Any], mark: str) -> dict[str, Any]:
    """The request with its fingerprint in the environment of every pool that runs our launcher."""
    for pool in native["jobSpec"]["workerPoolSpecs"]:
        if PROJECT in environment(pool):
            pool["containerSpec"]["env"].append(variable(FINGERPRINT, mark))
    return native


def _chosen(job: Job, context: Context, machine: Machine, image: Image) -> Iterator[Chosen]:
    yield from machine.chosen
    yield from image.chosen
    if job.resources.disk_for("vertex") is None:
        yield Chosen("resources.disk_gib", str(LEAST_DISK), "the smallest boot disk, and the service's own default")
    if job.limits.runtime is None:
        yield Chosen("limits.runtime", DEFAULT_RUNTIME, "the service's own default")
    yield from project_for_clients(job, context)
    yield from network_choices(job, machine)


def _notes(job: Job, native: dict[str, Any], machine: Machine) -> Iterator[str]:
    yield from repeat_notes(job)
    row = machine.instance
    on_demand = text(native, "jobSpec", "scheduling", "strategy") not in ("SPOT", "FLEX_START")
    if on_demand and row is not None and not row.on_demand:
        yield f"{row.name} {row.note}; this job asks for neither: set spot.enabled"
    if row is not None and row.rdma and job.resources.nodes > 1:
        yield f"{row.rdma} of {row.name} is used only if the image brings it; {_who_sets_up(row.rdma)}"


def _who_sets_up(rdma: str) -> str:
    """NCCL's plugin for RDMA comes with a script that launch.py knows; for TCPX and TCPXO no source gives settings."""
    known = rdma == "RDMA"
    return "launch.py runs /usr/local/gib/scripts/set_nccl_env.sh" if known else "cloudtrain sets no variables for it"
