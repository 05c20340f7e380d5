"""The job form of the vendor's CLI v2, as far as command jobs go: its fields, its words and the service's limits.

Fields and words are those of azure-ai-ml 1.35 (a test holds them against its schemas). The limits are the service's
(Bicep type of workspaces/jobs, Microsoft's page on resource limits): the vendor's loader checks none of them.
"""

from __future__ import annotations

from collections.abc import Mapping

# Patterns are of whole values, and compiled where one is looked at: rendering is to cost little.
SCHEMA = "https://azuremlschemas.azureedge.net/latest/commandJob.schema.json"

LONGEST_NAME = 255
NAME = r"[a-z0-9][a-z0-9_-]*"
"""Lower case: the vendor's client lowers every name without a word."""
LONGEST_DISPLAY_NAME = 256
LONGEST_DESCRIPTION = 5000
MOST_TAGS = 50
LONGEST_TAG_KEY = 100
LONGEST_TAG_VALUE = 1000
MOST_NODES = 100
"""Of one distributed run, and of a pool with InfiniBand."""
DAY = 86_400
LONGEST_RUNTIME = 21 * DAY
LONGEST_SPOT_RUNTIME = 7 * DAY

KEY = r"[A-Za-z_][A-Za-z0-9_]*"
"""Of inputs and outputs."""
SHM_SIZE = r"[1-9][0-9]*[bkmg]"
REFERENCE = r"\$\{\{\s*([^}]*?)\s*\}\}"
"""What the service replaces, in the command only."""

_DATASTORE = r"(?:subscriptions/[^/]+/resource[gG]roups/[^/]+/workspaces/[^/]+/)?datastores/[A-Za-z0-9_]+/paths/.*"
_ASSET = r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}"
DATASTORE_PATH = f"azureml://{_DATASTORE}"
INPUT_PATH = (
    rf"azureml://{_DATASTORE}|azureml://registries/[^/]+/data/{_ASSET}/(?:versions|labels)/[^/]+"
    rf"|azureml:{_ASSET}[:@][A-Za-z0-9._-]+|azureml:/subscriptions/.+|(?:wasbs?|abfss|https?)://[^/].*"
)
INPUT_FORMS = "azureml://datastores/NAME/paths/FOLDER, azureml:ASSET:VERSION, wasbs://, abfss:// or https://"
OUTPUT_FORM = "azureml://datastores/NAME/paths/FOLDER: Azure ML writes to datastores only"
ENVIRONMENT = (
    rf"azureml://registries/[^/]+/environments/{_ASSET}/(?:versions|labels)/[^/]+"
    rf"|azureml:{_ASSET}[:@][A-Za-z0-9._-]+|azureml:/subscriptions/.+"
)
"""A registered environment. Without a version or a label the vendor's client refuses it, but only when it sends."""
VAULT_SECRET = (
    r"https://[A-Za-z][A-Za-z0-9-]{1,22}[A-Za-z0-9]\.(?:vault\.azure\.(?:net|cn)|vault\.usgovcloudapi\.net)"
    r"/secrets/[A-Za-z0-9-]{1,127}(?:/[0-9a-f]{32})?"
)

INPUT_TYPES = ("uri_folder", "uri_file", "mltable", "custom_model", "mlflow_model", "triton_model")
OUTPUT_TYPES = INPUT_TYPES
INPUT_MODES = ("ro_mount", "download", "direct")
TABLE_MODES = (*INPUT_MODES, "eval_mount", "eval_download")
OUTPUT_MODES = ("rw_mount", "upload", "direct", "mount")
JOB_TIERS = ("null", "spot", "basic", "standard", "premium")
PRIORITIES = ("low", "medium", "high")
IDENTITIES = {"managed": "managed", "user": "user_identity", "aml_token": "aml_token"}
"""Our setting -> the form's word."""

_RESOURCE = ("name", "description", "tags", "properties")
JOB = (
    "$schema", "type", *_RESOURCE, "display_name", "experiment_name", "code", "command", "environment",
    "environment_variables", "compute", "resources", "distribution", "inputs", "outputs", "limits", "identity",
    "queue_settings", "services", "parent_job_name",
)  # fmt: skip
DROPPED_BELOW: Mapping[str, tuple[str, ...]] = {
    "": ("id", "status", "creation_context", "log_files", "parameters"),
    "environment": ("name", "version", "id", "creation_context", "latest_version", "intellectual_property"),
    "services": ("endpoint", "status", "error_message"),
}
"""Section -> what the vendor's loader takes there and then leaves out without a word."""
RESOURCES = (
    "instance_count", "instance_type", "shm_size", "docker_args", "locations", "max_instance_count", "properties",
)  # fmt: skip
ENVIRONMENT_FIELDS = (
    "image", "conda_file", "build", "description", "tags", "inference_config", "os_type", "datastore",
    "auto_delete_setting",
)  # fmt: skip
INPUT = ("type", "path", "mode", "path_on_compute", "datastore", "value")
OUTPUT = ("type", "path", "mode", "name", "version")
LIMITS = ("timeout",)
QUEUE = ("job_tier", "priority")
DISTRIBUTIONS: Mapping[str, tuple[str, ...]] = {
    "pytorch": ("type", "process_count_per_instance"),
    "mpi": ("type", "process_count_per_instance"),
    "tensorflow": ("type", "parameter_server_count", "worker_count"),
    "ray": (
        "type", "port", "address", "include_dashboard", "dashboard_port",
        "head_node_additional_args", "worker_node_additional_args",
    ),
}  # fmt: skip
IDENTITY_FIELDS: Mapping[str, tuple[str, ...]] = {
    "managed": ("type", "client_id", "object_id", "msi_resource_id"),
    "managed_identity": ("type", "client_id", "object_id", "msi_resource_id"),
    "user_identity": ("type",),
    "aml_token": ("type",),
}
_SERVICE = ("type", "port", "nodes", "properties")
SERVICES: Mapping[str, tuple[str, ...]] = {
    "ssh": (*_SERVICE, "ssh_public_keys"),
    "tensor_board": (*_SERVICE, "log_dir"),
    "vs_code": _SERVICE,
    "jupyter_lab": _SERVICE,
}
