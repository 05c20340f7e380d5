"""``InputDataConfig``: the folders in S3 that every node finds below /opt/ml/input/data.

The code and the spec come first, then the job's data. ``ShardedByS3Key`` gives node i about 1/n of the objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cloudtrain.providers.sagemaker.places import CODE_CHANNEL, OURS, SPEC_CHANNEL, folder

if TYPE_CHECKING:
    from cloudtrain.job import Job
    from cloudtrain.providers.places import Places
    from cloudtrain.spec.problems import Path

MOST = 20
LONGEST_NAME = 64
_MODES = {None: "File", "download": "File", "mount": "FastFile"}
_SHARDS = {"replicate": "FullyReplicated", "by-object": "ShardedByS3Key"}


def channels_of(job: Job, places: Places) -> list[dict[str, Any]]:
    """All channels. The job has been checked."""
    ours = [_channel(CODE_CHANNEL, places.code), _channel(SPEC_CHANNEL, places.spec)]
    data = [
        _channel(name, folder(channel.uri_for("sagemaker") or ""), _MODES[channel.mode], _SHARDS[channel.shard])
        for name, channel in job.data.items()
    ]
    return [*ours, *data]


def channel_problems(job: Job) -> Iterator[tuple[Path, str]]:
    """Names that cannot be sent, and too many of them."""
    for name in job.data:
        if len(name) > LONGEST_NAME:
            yield ("data", name), f"the name has {len(name)} characters, at most {LONGEST_NAME} on SageMaker"
        if name.lower().startswith(OURS):
            yield ("data", name), f"begins with {OURS}, as the channels do that cloudtrain adds; take another name"
    if len(job.data) > MOST - 2:
        yield ("data",), f"{len(job.data)} channels and 2 of cloudtrain's own, at most {MOST} in all on SageMaker"


def channel_notes(job: Job) -> Iterator[str]:
    """What sharing out by object does not promise."""
    shared = [name for name, channel in job.data.items() if channel.shard == "by-object"]
    if shared and job.resources.nodes > 1:
        yield (
            f"data.{', data.'.join(shared)}: nodes get whole objects by key, so unequal amounts, and none where there "
            f"are fewer than {job.resources.nodes} objects"
        )


def _channel(name: str, uri: str, mode: str = "File", distribution: str = "FullyReplicated") -> dict[str, Any]:
    source = {"S3DataType": "S3Prefix", "S3Uri": uri, "S3DataDistributionType": distribution}
    return {"ChannelName": name, "DataSource": {"S3DataSource": source}, "InputMode": mode}
