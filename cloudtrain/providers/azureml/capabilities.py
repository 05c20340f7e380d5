"""What becomes of every field of the job file on Azure ML."""

from __future__ import annotations

from cloudtrain.providers.base import Capability
from cloudtrain.providers.features import COMMON

_STREAM = "Azure ML mounts or downloads an input; write mode: mount, which reads files as they are opened"
_DISK = "the disk of an Azure VM comes with its size; leave it out here, and name an instance with enough of it"

CAPABILITIES: tuple[Capability, ...] = (
    *COMMON,
    Capability("name", "native", "name, display_name, experiment_name; the tag cloudtrain_job"),
    Capability("code", "native", "code: the snapshot with launch.py and code.tar.gz; the tag cloudtrain_code"),
    Capability("resources.nodes", "native", "resources.instance_count; a pytorch distribution for more than one"),
    Capability("resources.accelerator", "native", "resources.instance_type on serverless; a cluster has its own size"),
    Capability("resources.accelerators_per_node", "native", "resources.instance_type, as the accelerator"),
    Capability("resources.instance", "native", "resources.instance_type; a cluster of VMs has its own size"),
    Capability("resources.disk_gib", "refused", _DISK),
    Capability("resources.shm_gib", "native", "resources.shm_size; half of the VM's memory unless given"),
    Capability("environment.image", "native", "environment: a container image, or a registered environment"),
    Capability("environment.torch", "native", "environment: a curated image with it, or a base image with conda"),
    Capability("environment.env", "native", "environment_variables; ${{ is refused, it is not replaced there"),
    Capability("environment.secrets", "launcher", "https://VAULT.vault.azure.net/secrets/NAME, read on every node"),
    Capability("data.*.uri", "native", "inputs.*.path: datastore, data asset, wasbs, abfss, https"),
    Capability("data.*.mode", "native", "inputs.*.mode: ro_mount (mount, the default) or download"),
    Capability("data.*.mode=stream", "refused", _STREAM),
    Capability("data.*.shard", "launcher", "by-object: every node gets each N-th object of the mounted input"),
    Capability("outputs.*", "native", "outputs.*: rw_mount of a datastore's folder"),
    Capability("checkpoint.uri", "native", "outputs.cloudtrain_checkpoint: rw_mount, the same folder for all attempts"),
    Capability("spot.enabled", "native", "queue_settings.job_tier on serverless; a cluster has its own vm_priority"),
    Capability("spot.max_wait", "client", "CLOUDTRAIN_POLICY, not kept yet; the service has no such limit"),
    Capability(
        "retries.preemption", "client", "CLOUDTRAIN_POLICY, not kept yet; a restart by the service is not promised"
    ),
    Capability(
        "retries.failure", "client", "CLOUDTRAIN_POLICY, not kept yet; the service does not repeat a script that failed"
    ),
    Capability("limits.runtime", "native", "limits.timeout: at most 21 days, 7 on low-priority"),
    Capability("limits.pending", "client", "CLOUDTRAIN_POLICY, not kept yet; a job may stay queued for ever"),
    Capability("tags", "native", "tags: 45 of them, names up to 100 characters"),
    Capability(
        "overrides", "native", "fields of the command job form (CLI v2), merged last; what launch.py needs stays"
    ),
)
