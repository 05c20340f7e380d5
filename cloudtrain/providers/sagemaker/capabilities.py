"""What becomes of every field of the job file on SageMaker."""

from __future__ import annotations

from cloudtrain.providers.base import Capability
from cloudtrain.providers.features import COMMON

CAPABILITIES: tuple[Capability, ...] = (
    *COMMON,
    Capability("name", "native", "TrainingJobName begins with it; Tags cloudtrain:job"),
    Capability("code", "launcher", "channel cloudtrain_code; launch.py unpacks it on every node"),
    Capability("resources.nodes", "native", "ResourceConfig.InstanceCount"),
    Capability("resources.accelerator", "native", "ResourceConfig.InstanceType, chosen from the catalogue"),
    Capability("resources.accelerators_per_node", "native", "ResourceConfig.InstanceType, chosen from the catalogue"),
    Capability("resources.instance", "native", "ResourceConfig.InstanceType"),
    Capability(
        "resources.disk_gib",
        "native",
        "ResourceConfig.VolumeSizeInGB; types with an instance store use that, its size is fixed, and more is refused",
    ),
    Capability(
        "resources.shm_gib",
        "refused",
        "SageMaker has no setting for shared memory; use fewer loader workers, or "
        "torch.multiprocessing.set_sharing_strategy('file_system')",
    ),
    Capability(
        "environment.image", "native", "AlgorithmSpecification.TrainingImage; default: AWS's image with PyTorch"
    ),
    Capability("environment.torch", "native", "AlgorithmSpecification.TrainingImage, chosen from the catalogue"),
    Capability(
        "environment.env",
        "native",
        "Environment, at most 100 with cloudtrain's own, of at most 512 characters",
    ),
    Capability(
        "environment.secrets",
        "launcher",
        "CLOUDTRAIN_SECRETREF_<NAME>: name or ARN of a Secrets Manager secret, or ARN of an SSM parameter; launch.py "
        "fetches the value with the job's role",
    ),
    Capability(
        "data.*.uri",
        "native",
        "InputDataConfig, S3DataSource with S3DataType S3Prefix; a folder in S3, in the job's region",
    ),
    Capability("data.*.mode", "native", "InputMode: download is File (the default), mount is FastFile"),
    Capability(
        "data.*.mode=stream",
        "refused",
        "Pipe mode gives each channel to one reader, and a node has several ranks; mount streams as files are read",
    ),
    Capability(
        "data.*.shard", "native", "S3DataDistributionType: replicate is FullyReplicated, by-object is ShardedByS3Key"
    ),
    Capability("outputs.*", "launcher", "CLOUDTRAIN_OUTPUT_<NAME>; launch.py uploads the folder at the end"),
    Capability(
        "checkpoint.uri",
        "native",
        "CheckpointConfig, two-way in step with /opt/ml/checkpoints; by default beside the run",
    ),
    Capability(
        "spot.enabled", "native", "EnableManagedSpotTraining; interrupted jobs are started again by the service"
    ),
    Capability("spot.max_wait", "native", "StoppingCondition.MaxWaitTimeInSeconds, waiting and running together"),
    Capability(
        "retries.preemption",
        "native",
        "RetryStrategy, after faults of the platform (at most 30); an interrupted spot job is started again by the "
        "service until MaxWaitTimeInSeconds, however often",
    ),
    Capability(
        "retries.failure", "client", "CLOUDTRAIN_POLICY, not kept yet; SageMaker never repeats a script that failed"
    ),
    Capability(
        "limits.runtime",
        "native",
        "StoppingCondition.MaxRuntimeInSeconds, at most 28d, all native retries together; default 1d",
    ),
    Capability(
        "limits.pending",
        "native",
        "StoppingCondition.MaxPendingTimeInSeconds for types with accelerators, 30m to 28d; otherwise "
        "CLOUDTRAIN_POLICY, not kept yet",
    ),
    Capability("tags", "native", "Tags, beside cloudtrain:job, cloudtrain:run and cloudtrain:attempt"),
    Capability(
        "overrides",
        "native",
        "fields of CreateTrainingJob, merged last; the name, the number of nodes, launch.py, its two channels and the "
        "CLOUDTRAIN_ variables stay cloudtrain's",
    ),
)
