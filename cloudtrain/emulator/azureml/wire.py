"""A received job as the form of the vendor's CLI v2: what was written before ``load_job`` and MLClient sent it.

The form is what ``providers.azureml`` speaks: its rules, its in-container contract. Every field is turned back, so that
what ``render`` shows can be held against what arrives; ``$schema`` alone never travels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from pydantic.alias_generators import to_camel

from cloudtrain.emulator.azureml import body

_MODES = {
    "ReadOnlyMount": "ro_mount",
    "Download": "download",
    "Direct": "direct",
    "EvalMount": "eval_mount",
    "EvalDownload": "eval_download",
    "ReadWriteMount": "rw_mount",
    "Upload": "upload",
}
_IDENTITIES = {"Managed": "managed", "UserIdentity": "user_identity", "AMLToken": "aml_token"}
_SERVICES = {"SSH": "ssh", "TensorBoard": "tensor_board", "JupyterLab": "jupyter_lab", "VSCode": "vs_code"}
_PRIORITIES = {1: "low", 2: "medium", 3: "high"}
_ASSET = r"/subscriptions/.+/(?:environments|data|codes|computes)/(?P<name>[^/]+)(?:/versions/(?P<version>[^/]+))?"

_WIRE = {
    "code": "codeId",
    "compute": "computeId",
    "environment": "environmentId",
    "path": "uri",
    "name": "assetName",
    "version": "assetVersion",
}
"""Names of the form that are not just written otherwise on the wire."""
_NAMED = ("inputs", "outputs", "tags", "properties", "environment_variables", "services")


def form_of(
    name: str, job: body.CommandJob, *, code: str | None, environment: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The form. ``code``: how it names the code. ``environment``: the properties of an anonymous environment, which
    stands in the form itself; None for one that the form names."""
    given: dict[str, Any] = {
        "type": "command",
        "name": name,
        "display_name": job.display_name,
        "experiment_name": job.experiment_name,
        "description": job.description,
        "parent_job_name": job.parent_job_name,
        "tags": job.tags,
        "properties": job.properties,
        "command": job.command,
        "code": code,
        "environment": _short(job.environment_id) if environment is None else _inline(environment),
        "environment_variables": job.environment_variables,
        "compute": _short(job.compute_id) if job.compute_id is not None else None,
        "inputs": {key: _input(item) for key, item in (job.inputs or {}).items()},
        "outputs": {key: _output(item) for key, item in (job.outputs or {}).items()},
        "resources": _resources(job.resources),
        "distribution": _distribution(job.distribution),
        "limits": {"timeout": seconds(job.limits.timeout)} if job.limits and job.limits.timeout else None,
        "queue_settings": _queue(job.queue_settings),
        "identity": _identity(job.identity),
        "services": {key: _service(item) for key, item in (job.services or {}).items()},
    }
    return {key: value for key, value in given.items() if value not in (None, {})}


def place(path: tuple[Any, ...]) -> str:
    """A path of the form, as the wire has it: ``properties.resources.instanceCount``."""
    return ".".join(["properties", *_steps(path)])


def seconds(duration: str) -> int | float | str:
    """``PT1H`` in seconds, a whole number where it is one; what is no such duration stays as it is."""
    found = re.fullmatch(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", duration)
    if not found or duration[-1] in "PT":
        return duration
    days, hours, minutes, rest = (float(part or 0) for part in found.groups())
    total = timedelta(days=days, hours=hours, minutes=minutes, seconds=rest).total_seconds()
    return int(total) if total.is_integer() else total


def _steps(path: tuple[Any, ...]) -> Iterator[str]:
    for depth, step in enumerate(path):
        if depth == 1 and path[0] in _NAMED:  # a name of the user's
            yield str(step)
        elif depth == 2 and step == "type":
            yield f"job{'Input' if path[0] == 'inputs' else 'Output'}Type"
        elif depth == 0 and step in ("name", "type"):
            yield {"name": "name", "type": "jobType"}[step]
        else:
            yield _WIRE.get(str(step)) or to_camel(str(step))


def _short(arm_id: str) -> str:
    """``azureml:NAME:VERSION`` of what lies in the workspace, ``azureml:NAME`` of a compute."""
    if found := re.fullmatch(_ASSET, arm_id):
        return f"azureml:{found['name']}" + (f":{found['version']}" if found["version"] else "")
    return arm_id if arm_id.startswith(("azureml:", "/")) else f"azureml:{arm_id}"


def _inline(environment: Mapping[str, Any]) -> dict[str, Any]:
    import yaml

    conda = environment.get("condaFile")
    found = {"image": environment.get("image"), "conda_file": yaml.safe_load(conda) if conda else None}
    return {name: value for name, value in found.items() if value is not None}


def _input(item: body.Input) -> dict[str, Any]:
    if item.job_input_type == "literal":
        return {"value": item.value}
    path = _short(item.uri) if item.uri and item.uri.startswith("/subscriptions/") else item.uri
    return _given(type=item.job_input_type, path=path, mode=_MODES.get(item.mode or ""))


def _output(item: body.Output) -> dict[str, Any]:
    return _given(
        type=item.job_output_type,
        path=item.uri,
        mode=_MODES.get(item.mode or ""),
        name=item.asset_name,
        version=item.asset_version,
    )


def _resources(item: body.Resources | None) -> dict[str, Any]:
    if item is None:
        return {}
    return _given(
        instance_count=item.instance_count,
        instance_type=item.instance_type,
        shm_size=item.shm_size,
        docker_args=item.docker_args if item.docker_args is not None else item.docker_args_list,
        locations=item.locations,
        max_instance_count=item.max_instance_count,
        properties=item.properties or None,
    )


def _distribution(item: Any) -> dict[str, Any]:
    if item is None:
        return {}
    fields = item.model_dump(exclude_none=True)
    return {"type": fields.pop("distribution_type").lower(), **fields}


def _queue(item: body.Queue | None) -> dict[str, Any]:
    return _given(job_tier=item.job_tier, priority=_PRIORITIES.get(item.priority or 0)) if item else {}


def _identity(item: body.Identity | None) -> dict[str, Any]:
    if item is None:
        return {}
    return _given(
        type=_IDENTITIES[item.identity_type],
        client_id=item.client_id,
        object_id=item.object_id,
        msi_resource_id=item.resource_id,
    )


def _service(item: body.Service) -> dict[str, Any]:
    own = item.properties or {}
    return _given(
        type=_SERVICES[item.job_service_type],
        port=item.port,
        nodes="all" if (item.nodes or {}).get("nodesValueType") == "All" else None,
        ssh_public_keys=own.get("sshPublicKeys"),
        log_dir=own.get("logDir"),
    )


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
