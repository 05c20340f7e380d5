"""A job as an Azure ML command job, in the job form of the vendor's CLI v2: what ``az ml job create`` reads.

Every node runs the one command: launch.py, with the paths of spec.json and of the run's folders. The code snapshot
beside the form (``code/``) holds it and the user's code; spec.json is an input, beside the run's folders.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cloudtrain.providers.azureml.account import ACCOUNT
from cloudtrain.providers.azureml.capabilities import CAPABILITIES
from cloudtrain.providers.azureml.compute import (
    compute_fields,
    machine_of,
    queue_fields,
    runtime_choice,
    runtime_problems,
    shm_choice,
    spot_notes,
)
from cloudtrain.providers.azureml.environment import variable_choices, variable_problems, variables_of
from cloudtrain.providers.azureml.folders import command_of, folder_problems, inputs_of, outputs_of
from cloudtrain.providers.azureml.form import IDENTITIES, SCHEMA
from cloudtrain.providers.azureml.image import environment_of, image_of
from cloudtrain.providers.azureml.ownership import ownership_problems
from cloudtrain.providers.azureml.secret import secret_notes, secret_problems
from cloudtrain.providers.azureml.tags import tag_problems, tags_of
from cloudtrain.providers.base import Context, Request, Shipped, refuse
from cloudtrain.providers.features import refusals
from cloudtrain.providers.identity import fingerprint, native_name
from cloudtrain.providers.nodes import FINGERPRINT, launch_spec, launcher_channels
from cloudtrain.providers.overrides import overridden
from cloudtrain.providers.places import places_of

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.image import Image
    from cloudtrain.providers.machine import Machine
    from cloudtrain.spec.problems import Path

CODE = "code"
"""The snapshot's folder, beside the form."""


def translate(job: Job, context: Context) -> Request:
    """The request of one attempt. Raises JobFileError with all that Azure ML or cloudtrain refuses."""
    machine = machine_of(job, context)
    image = image_of(job, machine)
    refuse(job, _problems(job, context, machine, image))
    spec = launch_spec(job, context, channels=launcher_channels(job, downloads=False))
    made = _native(job, context, machine, image)
    native = overridden(job, "azureml", made, ownership_problems)
    return Request(
        provider="azureml",
        name=native_name(context.run_id, context.attempt),
        native=_marked(native, spec),
        spec=spec,
        ships=(Shipped("code", f"{CODE}/"), Shipped("spec", places_of(job, context).spec)),
        chosen=(
            *machine.chosen,
            *image.chosen,
            *shm_choice(job, context, machine),
            *runtime_choice(job),
            *variable_choices(job, machine),
        ),
        notes=(*machine.notes, *image.notes, *spot_notes(job, context), *secret_notes(job, context)),
        account={name: context.settings[name] for name in ACCOUNT},
    )


def _problems(job: Job, context: Context, machine: Machine, image: Image) -> Iterator[tuple[Path, str]]:
    yield from refusals(job, "azureml", CAPABILITIES)
    yield from machine.problems
    yield from image.problems
    yield from folder_problems(job)
    yield from secret_problems(job)
    yield from variable_problems(job)
    yield from runtime_problems(job)
    yield from tag_problems(job, context)


def _native(job: Job, context: Context, machine: Machine, image: Image) -> dict[str, Any]:
    """In the order in which Microsoft's reference lists the fields."""
    name = native_name(context.run_id, context.attempt)
    form: dict[str, Any] = {
        "$schema": SCHEMA,
        "type": "command",
        "name": name,
        "display_name": name,
        "experiment_name": job.name,
        "description": _description(job),
        "tags": tags_of(job, context),
        "command": command_of(job),
        "code": f"./{CODE}",
        "environment": environment_of(image),
        "environment_variables": variables_of(job, context, machine),
        **compute_fields(job, context, machine),
    }
    if job.limits.runtime:
        form["limits"] = {"timeout": job.limits.runtime.seconds}
    form["inputs"] = inputs_of(job, context)
    form["outputs"] = outputs_of(job, context)
    if identity := context.settings["identity"]:
        form["identity"] = {"type": IDENTITIES[identity]}
    return {**form, **queue_fields(job, context)}


def _description(job: Job) -> str:
    nodes, processes = job.resources.nodes, job.processes
    return f"{job.start} on {nodes} node{'s' if nodes > 1 else ''} x {processes} process{'es' if processes > 1 else ''}"


def _marked(native: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    variables = {**native["environment_variables"], FINGERPRINT: fingerprint(native, spec)}
    return {**native, "environment_variables": variables}
