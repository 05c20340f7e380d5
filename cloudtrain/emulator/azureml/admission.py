"""Whether a job that was received is taken: what the service refuses at the PUT.

Names, limits and alphabets are the rules by which ``cloudtrain`` checks its own requests, asked of the form that the
received job came from; those that are cloudtrain's alone (one process per node, launch.py in the command) are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cloudtrain.catalog.instances import instances
from cloudtrain.emulator.azureml import body, wire
from cloudtrain.emulator.azureml.assets import Codes, Environments
from cloudtrain.emulator.azureml.errors import ServiceError
from cloudtrain.emulator.azureml.jobs import CHANGEABLE, Job
from cloudtrain.emulator.azureml.workspace import Workspace
from cloudtrain.errors import did_you_mean
from cloudtrain.providers.azureml.reading import nodes
from cloudtrain.providers.azureml.rules import environment, places, values
from cloudtrain.providers.reading import text

_RULES = (values, environment, places)


def admitted(
    name: str, received: Any, workspace: Workspace, codes: Codes, environments: Environments
) -> dict[str, Any]:
    """The form of a job that is taken. Raises ServiceError with what the service would say."""
    job = body.read(received)
    _compute(job, workspace)
    if job.code_id is not None:
        codes.by_id(job.code_id)
    kept = environments.by_id(job.environment_id)
    form = wire.form_of(
        name,
        job,
        code="./code" if job.code_id is not None else None,
        environment=kept if kept and kept.get("isAnonymous") else None,
    )
    problems = [(wire.place(found.path), found.message) for rules in _RULES for found in rules.problems(form)]
    if problems:
        raise body.refusal(problems)
    return form


def unchanged(job: Job, received: Mapping[str, Any]) -> None:
    """That a second PUT of a name changes nothing but what can change. Raises ServiceError: 400 UserError with
    JobPropertyImmutable, as users of the service quote it."""
    before = {key: value for key, value in job.received.items() if key not in CHANGEABLE}
    after = {key: value for key, value in received.items() if key not in CHANGEABLE}
    changed = sorted(key for key in {**before, **after} if before.get(key) != after.get(key))
    if changed:
        text = (
            f"A job with this name already exists. To create a new one, use another name. Of the existing job "
            f"{', '.join(changed)} cannot be changed; only description, tags, displayName, properties, and isArchived "
            "can be updated."
        )
        raise ServiceError(400, text, inner=("Immutable", "JobPropertyImmutable"))


def quota_refusal(form: Mapping[str, Any]) -> ServiceError:
    """What a family without quota is answered with: the code and the kind of text that users quote."""
    size = text(form, "resources", "instance_type") or "the cluster's family"
    message = (
        f"The specified subscription has a vCPU quota of 0 for {size} and is less than the requested job node count of "
        f"{nodes(form)}. Ask for an increase of the family's quota."
    )
    return ServiceError(400, message, target="instanceType", inner=("JobNodeCountExceedsCoreQuota",))


def _compute(job: body.CommandJob, workspace: Workspace) -> None:
    if job.compute_id is not None:
        prefix = workspace.below("computes", "")
        if not job.compute_id.startswith(prefix):
            raise ServiceError(404, f"Compute {job.compute_id} was not found", target="computeId")
        workspace.compute(job.compute_id.removeprefix(prefix))
        return
    size = job.resources.instance_type if job.resources else None
    if size is None:
        return  # the service has a default for serverless
    known = {row.name.lower(): row.name for row in instances("azureml")}
    if size.lower() not in known:
        near = did_you_mean(size, known.values())
        raise ServiceError(400, f"{size} is no VM size of this region{near}", target="instanceType")


def impossible(form: Mapping[str, Any]) -> Iterator[str]:
    """Why a job that was taken cannot run: what the service finds at its start, and what the emulator cannot do."""
    from cloudtrain.providers.azureml.rules import relations

    yield from (found.message for found in relations.problems(form) if found.path == ("command",))
    if "launch.py" not in text(form, "command") or "code" not in form:
        yield "the emulator runs commands that start launch.py, which lies in the code"
    per_node = form.get("distribution", {}).get("process_count_per_instance", 1)
    if per_node != 1:
        yield f"the emulator starts one process on each node, not {per_node}"
    for kind in ("inputs", "outputs"):
        yield from (
            f"the emulator has no mode direct ({kind}.{key})"
            for key, item in form.get(kind, {}).items()
            if item.get("mode") == "direct"
        )
