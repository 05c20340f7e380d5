"""The job resource as it comes over the wire, of command jobs: fields, types and words.

Names and words are those that azure-ai-ml 1.35.2 sends and holds in its ARM models (a test holds them against these).
Those models take unknown fields, wrong words and missing values; the emulator does not.
"""

# Not `from __future__ import annotations`: pydantic would have to compile the text of every field's type.

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from cloudtrain.emulator.azureml.errors import ServiceError

Texts = dict[str, str]


class _Wire(BaseModel):
    """Camel case outside; nothing unknown, no word for a number."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True, frozen=True)


class Input(_Wire):
    """A folder, file, model or table; or with ``literal`` a value."""

    job_input_type: Literal[
        "uri_folder", "uri_file", "mltable", "custom_model", "mlflow_model", "triton_model", "literal"
    ]
    uri: str | None = None
    mode: Literal["ReadOnlyMount", "Download", "Direct", "EvalMount", "EvalDownload"] | None = None
    value: str | None = None
    path_on_compute: str | None = None
    description: str | None = None


class Output(_Wire):
    """A folder, file, model or table that the job writes."""

    job_output_type: Literal["uri_folder", "uri_file", "mltable", "custom_model", "mlflow_model", "triton_model"]
    uri: str | None = None
    mode: Literal["ReadWriteMount", "Upload", "Direct"] | None = None
    asset_name: str | None = None
    asset_version: str | None = None
    path_on_compute: str | None = None
    description: str | None = None


class Resources(_Wire):
    """The machines."""

    instance_count: int | None = None
    instance_type: str | None = None
    shm_size: str | None = None
    docker_args: str | None = None
    docker_args_list: list[str] | None = None
    locations: list[str] | None = None
    max_instance_count: int | None = None
    properties: dict[str, Any] | None = None


class _PyTorch(_Wire):
    distribution_type: Literal["PyTorch"]
    process_count_per_instance: int | None = None


class _Mpi(_Wire):
    distribution_type: Literal["Mpi"]
    process_count_per_instance: int | None = None


class _TensorFlow(_Wire):
    distribution_type: Literal["TensorFlow"]
    parameter_server_count: int | None = None
    worker_count: int | None = None


class _Ray(_Wire):
    distribution_type: Literal["Ray"]
    port: int | None = None
    address: str | None = None
    include_dashboard: bool | None = None
    dashboard_port: int | None = None
    head_node_additional_args: str | None = None
    worker_node_additional_args: str | None = None


Distribution = Annotated[_PyTorch | _Mpi | _TensorFlow | _Ray, Field(discriminator="distribution_type")]


class Identity(_Wire):
    """Who the job runs as."""

    identity_type: Literal["Managed", "UserIdentity", "AMLToken"]
    client_id: str | None = None
    object_id: str | None = None
    resource_id: str | None = None


class Limits(_Wire):
    """``timeout``: a duration as ISO 8601 has it."""

    job_limits_type: Literal["Command"]
    timeout: str | None = None


class Queue(_Wire):
    """Serverless compute: how soon, and whether it may be taken away."""

    job_tier: Literal["Null", "Spot", "Basic", "Standard", "Premium"] | None = None
    priority: Literal[1, 2, 3] | None = None


class Service(_Wire):
    """Something that runs beside the job."""

    job_service_type: Literal["SSH", "TensorBoard", "JupyterLab", "VSCode"]
    port: int | None = None
    nodes: dict[str, str] | None = None
    properties: Texts | None = None
    endpoint: str | None = None
    status: str | None = None
    error_message: str | None = None


class CommandJob(_Wire):
    """``properties`` of the resource."""

    job_type: Literal["Command"]
    command: str
    environment_id: str
    code_id: str | None = None
    compute_id: str | None = None
    component_id: str | None = None
    display_name: str | None = None
    experiment_name: str | None = None
    description: str | None = None
    parent_job_name: str | None = None
    is_archived: bool | None = None
    tags: Texts | None = None
    properties: Texts | None = None
    environment_variables: Texts | None = None
    inputs: dict[str, Input] | None = None
    outputs: dict[str, Output] | None = None
    resources: Resources | None = None
    distribution: Distribution | None = None
    limits: Limits | None = None
    queue_settings: Queue | None = None
    identity: Identity | None = None
    services: dict[str, Service] | None = None
    notification_setting: dict[str, Any] | None = None


class Job(BaseModel):
    """The resource; what the service alone decides may stand there, too, and is not heeded."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    properties: CommandJob
    id: str | None = None
    name: str | None = None
    type: str | None = None
    system_data: dict[str, Any] | None = Field(default=None, alias="systemData")


def read(received: Any) -> CommandJob:
    """What was sent, checked for form. Raises ServiceError with all that is wrong."""
    if not isinstance(received, Mapping) or not isinstance(received.get("properties"), Mapping):
        raise ServiceError(400, "The request's body holds no job: properties is missing", inner=("BadArgument",))
    kind = received["properties"].get("jobType")
    if isinstance(kind, str) and kind in ("AutoML", "Pipeline", "Sweep", "Spark", "FineTuning"):
        raise ServiceError(400, f"The emulator runs command jobs only, not jobs of type {kind}", inner=("BadArgument",))
    try:
        return Job.model_validate(dict(received)).properties
    except ValidationError as error:
        raise refusal(
            [(".".join(map(str, item["loc"])), item["msg"]) for item in error.errors(include_url=False)]
        ) from None


def refusal(problems: list[tuple[str, str]]) -> ServiceError:
    """The error that says what is wrong where."""
    text = "; ".join(f"{place}: {message}" if place else message for place, message in problems)
    return ServiceError(400, f"The job is not valid: {text}", target=problems[0][0], inner=("BadArgument",))
