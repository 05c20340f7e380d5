"""Rules that no model holds: what fields get wrong together. From AWS's guide and the model's own descriptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.providers.sagemaker.jobs import CPU, GPU, found, native_of

Native = dict[str, Any]
KEY = "arn:aws:kms:eu-west-1:111122223333:key/1"
NFS = {
    "FileSystemId": "fs-0123456789abcdef0",
    "FileSystemAccessMode": "ro",
    "FileSystemType": "FSxLustre",
    "DirectoryPath": "/x",
}
VPC = {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}


def channel(name: str = "t", source: Any = None, **fields: Any) -> Native:
    source = source or s3()
    return {"ChannelName": name, "DataSource": source, **fields}


def s3(uri: str = "s3://bucket/x/", **fields: Any) -> Native:
    return {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": uri, **fields}}


def with_channel(*channels: Native, **fields: Any) -> Callable[[Native], None]:
    def change(native: Native) -> None:
        native["InputDataConfig"] += channels
        native.update(fields)

    return change


def with_resources(*, drop: str = "", more: Native | None = None, **fields: Any) -> Callable[[Native], None]:
    def change(native: Native) -> None:
        for name in drop.split():
            native["ResourceConfig"].pop(name)
        native["ResourceConfig"].update(fields)
        native.update(more or {})

    return change


def with_fields(**fields: Any) -> Callable[[Native], None]:
    return lambda native: native.update(fields)


def within(name: str, **fields: Any) -> Callable[[Native], None]:
    return lambda native: native[name].update(fields)


SPOT = {"EnableManagedSpotTraining": True}
GROUPS = [{"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 1, "InstanceGroupName": "a"}]
FIRST = {"InstanceType": "ml.p4d.24xlarge"}
SECOND = {"InstanceType": "ml.p4de.24xlarge"}

WRONG: list[tuple[Callable[[Native], None], str, str]] = [
    (with_fields(**SPOT), "StoppingCondition.MaxWaitTimeInSeconds", "at least MaxRuntimeInSeconds (86400)"),
    (within("StoppingCondition", MaxWaitTimeInSeconds=90_000), "StoppingCondition.MaxWaitTimeInSeconds", "alone"),
    (
        with_fields(**SPOT, StoppingCondition={"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 59}),
        "StoppingCondition.MaxWaitTimeInSeconds",
        "59 s, at least MaxRuntimeInSeconds (60)",
    ),
    (
        with_fields(**SPOT, StoppingCondition={"MaxWaitTimeInSeconds": 3600}),
        "StoppingCondition.MaxWaitTimeInSeconds",
        "(86400)",
    ),
    (
        within("StoppingCondition", MaxRuntimeInSeconds=2_419_201),
        "StoppingCondition.MaxRuntimeInSeconds",
        "at most 2419200",
    ),
    (
        with_resources(
            KeepAlivePeriodInSeconds=600,
            more={**SPOT, "StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60}},
        ),
        "ResourceConfig.KeepAlivePeriodInSeconds",
        "spot machines are not kept",
    ),
    (with_resources(InstanceGroups=GROUPS), "ResourceConfig.InstanceGroups", "cannot stand beside InstanceType"),
    (
        with_resources(drop="InstanceType", InstanceGroups=GROUPS),
        "ResourceConfig.InstanceCount",
        "cannot stand beside InstanceGroups",
    ),
    (
        with_resources(drop="InstanceType InstanceCount", InstanceGroups=GROUPS, KeepAlivePeriodInSeconds=60),
        "ResourceConfig.KeepAlivePeriodInSeconds",
        "InstanceGroups",
    ),
    (with_resources(InstancePreferences=[FIRST]), "ResourceConfig.InstancePreferences", "beside InstanceType"),
    (
        with_resources(drop="InstanceType InstanceCount", InstancePreferences=[FIRST, SECOND]),
        "ResourceConfig.InstancePreferences",
        "InstanceCount must stand",
    ),
    (
        with_resources(drop="InstanceType", InstancePreferences=[{**FIRST, "InstanceCount": 2}]),
        "ResourceConfig.InstancePreferences",
        "InstanceCount must stand",
    ),
    (
        with_resources(drop="InstanceType InstanceCount", InstancePreferences=[{**FIRST, "InstanceCount": 2}, SECOND]),
        "ResourceConfig.InstancePreferences",
        "InstanceCount must stand",
    ),
    (
        with_resources(
            drop="InstanceType",
            InstancePreferences=[FIRST],
            more={**SPOT, "StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60}},
        ),
        "EnableManagedSpotTraining",
        "InstancePreferences",
    ),
    (
        with_resources(drop="InstanceType", InstancePreferences=[FIRST], InstancePlacementConfig={}),
        "ResourceConfig.InstancePlacementConfig",
        "InstancePreferences",
    ),
    (with_resources(drop="InstanceType"), "ResourceConfig.InstanceType", "name the machines"),
    (with_resources(drop="InstanceCount"), "ResourceConfig.InstanceCount", "is missing"),
    (with_resources(InstanceCount=0), "ResourceConfig.InstanceCount", "at least 1"),
    (with_resources(SelectedInstanceCount=1), "ResourceConfig.SelectedInstanceCount", "only told by the service"),
    (with_resources(VolumeKmsKeyId=KEY), "ResourceConfig.VolumeKmsKeyId", "must not be given: ml.p4de.24xlarge"),
    (with_resources(InstanceType="ml.m5.large"), "ResourceConfig.VolumeSizeInGB", "is missing: ml.m5.large"),
    (with_channel(channel("cloudtrain_spec")), "InputDataConfig.2.ChannelName", "earlier channel"),
    (
        with_channel(channel(source={**s3(), "FileSystemDataSource": NFS}), VpcConfig=VPC),
        "InputDataConfig.2.DataSource",
        "exactly one",
    ),
    (with_channel(channel(source={}) | {"DataSource": {}}), "InputDataConfig.2.DataSource", "exactly one"),
    (
        with_channel(channel(source={"FileSystemDataSource": NFS})),
        "InputDataConfig.2.DataSource.FileSystemDataSource",
        "VpcConfig is missing",
    ),
    (
        with_channel(channel(source={"FileSystemDataSource": NFS}, InputMode="FastFile"), VpcConfig=VPC),
        "InputDataConfig.2.InputMode",
        "File mode alone",
    ),
    (with_channel(channel(InputMode="Pipe")), "InputDataConfig.2.InputMode", "one reader"),
    (with_channel(channel(CompressionType="Gzip")), "InputDataConfig.2.CompressionType", "Pipe mode alone"),
    (
        with_channel(channel(source=s3(S3DataType="AugmentedManifestFile"))),
        "InputDataConfig.2.InputMode",
        "through Pipe alone",
    ),
    (
        with_channel(channel(source=s3(S3DataType="ManifestFile"), InputMode="FastFile")),
        "InputDataConfig.2.InputMode",
        "S3Prefix alone",
    ),
    (
        with_channel(channel(source=s3("s3://bucket/tra"), InputMode="FastFile")),
        "InputDataConfig.2.DataSource.S3DataSource.S3Uri",
        "must end with /",
    ),
    (
        with_channel(channel(source=s3(InstanceGroupNames=["a"]))),
        "InputDataConfig.0.DataSource.S3DataSource.InstanceGroupNames",
        "all must",
    ),
    (
        with_channel(channel(source=s3(InstanceGroupNames=["a"]))),
        "InputDataConfig.2.DataSource.S3DataSource.InstanceGroupNames",
        "none of ResourceConfig.InstanceGroups",
    ),
    (within("AlgorithmSpecification", AlgorithmName="a"), "AlgorithmSpecification.AlgorithmName", "TrainingImage"),
    (
        lambda native: native["AlgorithmSpecification"].pop("TrainingImage"),
        "AlgorithmSpecification.TrainingImage",
        "is missing",
    ),
    (lambda native: native.pop("AlgorithmSpecification"), "AlgorithmSpecification", "is missing"),
    (lambda native: native.pop("StoppingCondition"), "StoppingCondition", "is missing"),
    (
        lambda native: native["InputDataConfig"].pop(0),
        "AlgorithmSpecification.ContainerEntrypoint.2",
        "'cloudtrain_code', which InputDataConfig does not hold",
    ),
    (within("CheckpointConfig", LocalPath="/opt/ml/model/ck"), "CheckpointConfig.LocalPath", "/opt/ml/checkpoints"),
    (within("CheckpointConfig", LocalPath="/opt/ml/output"), "CheckpointConfig.LocalPath", "another use"),
    (with_fields(Tags=[{"Key": "Aws:x", "Value": ""}]), "Tags.0.Key", "reserved for AWS"),
    (
        with_fields(Tags=[{"Key": "x", "Value": ""}, {"Key": "x", "Value": "1"}]),
        "Tags.1.Key",
        "earlier tag",
    ),
]


@pytest.mark.parametrize(("change", "path", "said"), WRONG)
def test_a_rule_is_kept(change: Callable[[Native], None], path: str, said: str) -> None:
    native = native_of(GPU)
    assert found(native) == {}
    change(native)
    problems = found(native)
    assert path in problems, problems
    assert said in problems[path]


RIGHT: list[Callable[[Native], None]] = [
    with_fields(**SPOT, StoppingCondition={"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60}),
    within("StoppingCondition", MaxRuntimeInSeconds=2_419_200),
    with_resources(KeepAlivePeriodInSeconds=3600),
    with_resources(drop="InstanceType InstanceCount", InstanceGroups=GROUPS),
    with_resources(drop="InstanceType", InstancePreferences=[FIRST, SECOND]),
    with_resources(
        drop="InstanceType InstanceCount",
        InstancePreferences=[{**FIRST, "InstanceCount": 2}, {**SECOND, "InstanceCount": 1}],
    ),
    with_resources(InstanceType="ml.m5.large", VolumeSizeInGB=10, VolumeKmsKeyId=KEY),
    with_channel(channel(source={"FileSystemDataSource": NFS}, InputMode="File"), VpcConfig=VPC),
    with_channel(channel(source=s3(S3DataType="ManifestFile"), InputMode="File")),
    with_channel(channel(source=s3("s3://bucket/one.csv"), InputMode="File")),
    # Every channel of ours has its own mode, so that of the job is for those that have none.
    within("AlgorithmSpecification", TrainingInputMode="Pipe"),
    within("CheckpointConfig", LocalPath="/opt/ml/models"),
    lambda native: native.pop("CheckpointConfig"),
    lambda native: native.pop("Tags"),
    with_fields(EnableNetworkIsolation=True),
]


@pytest.mark.parametrize("change", RIGHT)
def test_what_is_allowed_passes(change: Callable[[Native], None]) -> None:
    native = native_of(GPU)
    change(native)
    assert found(native) == {}


def test_waiting_has_no_limit_on_machines_without_accelerators() -> None:
    native = native_of(CPU)
    native["StoppingCondition"]["MaxPendingTimeInSeconds"] = 3600
    assert "ml.m5.xlarge" in found(native)["StoppingCondition.MaxPendingTimeInSeconds"]


def test_a_container_without_network_has_no_secrets_and_no_outputs() -> None:
    native = native_of(CPU, environment={"secrets": {"K": "my/secret"}}, outputs={"m": "s3://bucket/m/"})
    native["EnableNetworkIsolation"] = True
    assert set(found(native)) == {"Environment.CLOUDTRAIN_SECRETREF_K", "Environment.CLOUDTRAIN_OUTPUT_M"}


@pytest.mark.parametrize(
    "spoilt",
    [
        {"ResourceConfig": []},
        {"ResourceConfig": {"InstanceGroups": "x", "InstancePreferences": [1]}},
        {"InputDataConfig": {"a": 1}},
        {"InputDataConfig": [None, "x", {"DataSource": "y"}, {"DataSource": {"S3DataSource": 5}, "ChannelName": 3}]},
        {"Tags": "x"},
        {"Tags": [{"Key": 5}]},
        {"Environment": []},
        {"HyperParameters": "x"},
        {"AlgorithmSpecification": "x"},
        {"AlgorithmSpecification": {"ContainerEntrypoint": "x", "MetricDefinitions": {}}},
        {"StoppingCondition": {"MaxWaitTimeInSeconds": "x", "MaxRuntimeInSeconds": True}},
        {"CheckpointConfig": {"LocalPath": 5}},
    ],
)
def test_no_form_of_request_breaks_the_check(spoilt: Native) -> None:
    """Overrides may hold anything that JSON can."""
    assert found({**native_of(GPU), **spoilt})
