"""What becomes of every field of the job file on Vertex AI."""

from __future__ import annotations

from cloudtrain.providers.base import Capability
from cloudtrain.providers.features import COMMON

_POOL = "jobSpec.workerPoolSpecs[]"

CAPABILITIES: tuple[Capability, ...] = (
    *COMMON,
    Capability("name", "native", "displayName, label cloudtrain_job, and the run's folder"),
    Capability("code", "launcher", "lies in the bucket under its digest; unpacked once on every node"),
    Capability("resources.nodes", "native", f"{_POOL}.replicaCount: pool 0 of 1, pool 1 of the others"),
    Capability("resources.accelerator", "native", f"{_POOL}.machineSpec.acceleratorType, with the machine that has it"),
    Capability("resources.accelerators_per_node", "native", f"{_POOL}.machineSpec.acceleratorCount"),
    Capability("resources.instance", "native", f"{_POOL}.machineSpec.machineType"),
    Capability("resources.disk_gib", "native", f"{_POOL}.diskSpec.bootDiskSizeGb, 100 to 64000"),
    Capability(
        "resources.shm_gib",
        "refused",
        "a CustomJob has no field for shared memory: Vertex AI fixes the size of /dev/shm; leave it out",
    ),
    Capability("environment.image", "native", f"{_POOL}.containerSpec.imageUri; the same in both pools"),
    Capability("environment.torch", "native", "chooses among the prebuilt images, all of them out of support"),
    Capability("environment.env", "native", f"{_POOL}.containerSpec.env, at most 100 with cloudtrain's own"),
    Capability("environment.secrets", "launcher", "a version in Secret Manager, read by launch.py on every node"),
    Capability("data.*.uri", "native", "gs://, mounted by Vertex AI under /gcs on every node"),
    Capability("data.*.mode", "launcher", "mount: read in place; download: copied before the ranks start"),
    Capability(
        "data.*.mode=stream",
        "refused",
        "Vertex AI has no streaming channel; mount reads objects as they are opened, download copies them first",
    ),
    Capability("data.*.shard", "launcher", "by-object: launch.py gives every node each N-th object by name"),
    Capability("outputs.*", "launcher", "gs://, a mounted folder that the script writes to"),
    Capability("checkpoint.uri", "launcher", "gs://, a mounted folder; the same one for all attempts of a run"),
    Capability("spot.enabled", "native", "jobSpec.scheduling.strategy: SPOT"),
    Capability(
        "spot.max_wait",
        "client",
        "CLOUDTRAIN_POLICY, not kept yet; Vertex AI's own maxWaitDuration is for FLEX_START alone",
    ),
    Capability(
        "retries.preemption",
        "native",
        "0: jobSpec.scheduling.disableRetries; else Vertex AI repeats a few times by itself; more is not kept yet",
    ),
    Capability(
        "retries.failure",
        "client",
        "CLOUDTRAIN_POLICY, not kept yet; Vertex AI does not repeat a script that ended with 1",
    ),
    Capability("limits.runtime", "native", "jobSpec.scheduling.timeout; seven days if left out"),
    Capability("limits.pending", "client", "CLOUDTRAIN_POLICY, not kept yet; the service lets a job wait as it likes"),
    Capability("tags", "native", "labels: lowercase letters, digits, _ and -; at most 64 of 64 characters"),
    Capability(
        "overrides", "native", "fields of CustomJob by their JSON names, merged last; what launch.py needs stays"
    ),
)
