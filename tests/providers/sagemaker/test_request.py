"""The peculiarities of a CreateTrainingJob request; what a field must be is from botocore's model and AWS's guide."""

from __future__ import annotations

import json
import re

import pytest

from tests.providers.sagemaker.jobs import CPU, GPU, native_of, request_of

LAUNCH = ["python3", "-u", "/opt/ml/input/data/cloudtrain_code/launch.py"]


def test_the_first_process_is_launch_py_and_no_shell() -> None:
    algorithm = native_of(GPU)["AlgorithmSpecification"]
    assert algorithm["ContainerEntrypoint"] == LAUNCH
    assert "ContainerArguments" not in algorithm
    assert algorithm["TrainingInputMode"] == "File"


@pytest.mark.parametrize(
    ("image", "first"),
    [
        ("763104351884.dkr.ecr.eu-west-1.amazonaws.com/pytorch:2.13-cu133-amzn2023-sagemaker", True),
        ("763104351884.dkr.ecr.eu-west-1.amazonaws.com/pytorch:2.13-cpu-amzn2023-sagemaker", False),
        ("763104351884.dkr.ecr.eu-west-1.amazonaws.com/pytorch-training:2.10.0-gpu-py313", False),
        ("111122223333.dkr.ecr.eu-west-1.amazonaws.com/pytorch:2.13-cu133", False),
    ],
)
def test_newer_cuda_images_of_aws_run_their_own_script_first(image: str, first: bool) -> None:
    """aws/deep-learning-containers, scripts/docker/pytorch/entrypoint.sh: ends in ``exec "$@"``."""
    request = request_of(GPU, environment={"image": image})
    words = request.native["AlgorithmSpecification"]["ContainerEntrypoint"]
    assert words == (["/usr/local/bin/entrypoint.sh", *LAUNCH] if first else LAUNCH)
    assert any(choice.field == "ContainerEntrypoint" for choice in request.chosen) == first


def test_own_channels_come_first_and_lie_where_code_and_spec_are_shipped() -> None:
    request = request_of(GPU, data={"train": {"uri": "s3://data-bucket/train/"}})
    channels = request.native["InputDataConfig"]
    assert [channel["ChannelName"] for channel in channels] == ["cloudtrain_code", "cloudtrain_spec", "train"]
    shipped = {ship.kind: ship.to for ship in request.ships}
    assert [channel["DataSource"]["S3DataSource"]["S3Uri"] for channel in channels] == [
        shipped["code"],
        shipped["spec"],
        "s3://data-bucket/train/",
    ]
    environment = request.native["Environment"]
    assert environment["CLOUDTRAIN_SPEC"] == "/opt/ml/input/data/cloudtrain_spec/spec.json"
    assert environment["CLOUDTRAIN_CODE"] == "/opt/ml/input/data/cloudtrain_code/code.tar.gz"


@pytest.mark.parametrize(
    ("mode", "shard", "native_mode", "distribution"),
    [
        (None, "replicate", "File", "FullyReplicated"),
        ("download", "by-object", "File", "ShardedByS3Key"),
        ("mount", "replicate", "FastFile", "FullyReplicated"),
        ("mount", "by-object", "FastFile", "ShardedByS3Key"),
    ],
)
def test_mode_and_shard_are_native(mode: str | None, shard: str, native_mode: str, distribution: str) -> None:
    request = request_of(GPU, data={"train": {"uri": "s3://data-bucket/t/", "mode": mode, "shard": shard}})
    channel = request.native["InputDataConfig"][2]
    assert channel["InputMode"] == native_mode
    assert channel["DataSource"]["S3DataSource"]["S3DataDistributionType"] == distribution
    assert "channels" not in request.spec  # nothing of it is left to the launcher
    assert any("data.train: nodes get whole objects" in note for note in request.notes) == (shard == "by-object")


def test_folders_end_with_a_slash_and_that_is_said() -> None:
    """S3Prefix is a prefix of keys: ``train`` would bring ``train2/`` along."""
    request = request_of(
        GPU,
        data={"a": {"uri": "s3://data-bucket/train"}, "b": {"uri": "s3://data-bucket/train2/"}},
        outputs={"report": "s3://data-bucket/report"},
    )
    uris = [channel["DataSource"]["S3DataSource"]["S3Uri"] for channel in request.native["InputDataConfig"]]
    assert uris[2:] == ["s3://data-bucket/train/", "s3://data-bucket/train2/"]
    assert request.native["Environment"]["CLOUDTRAIN_OUTPUT_REPORT"] == "s3://data-bucket/report/"
    (note,) = [note for note in request.notes if "with / at its end" in note]
    assert note.startswith("data.a.uri:")


def test_checkpoints_lie_in_a_folder_of_the_run_for_all_attempts() -> None:
    by_default = native_of(GPU)
    run = by_default["OutputDataConfig"]["S3OutputPath"]
    assert re.fullmatch(r"s3://my-sagemaker-bucket/cloudtrain/runs/digits-[0-9a-f]{10}", run)
    assert by_default["CheckpointConfig"] == {"S3Uri": f"{run}/checkpoints/", "LocalPath": "/opt/ml/checkpoints"}
    own = native_of(GPU, checkpoint={"uri": "s3://data-bucket/ck"})
    run_id = own["OutputDataConfig"]["S3OutputPath"].rpartition("/")[2]
    assert own["CheckpointConfig"]["S3Uri"] == f"s3://data-bucket/ck/{run_id}/"
    assert own["TrainingJobName"] == f"{run_id}-a1"


@pytest.mark.parametrize(
    ("instance", "disk", "sent"),
    [
        ("ml.m5.xlarge", None, 100),  # a volume only, and the service wants its size
        ("ml.m5.xlarge", 300, 300),
        ("ml.p3.2xlarge", None, 100),
        ("ml.g5.xlarge", None, None),  # an instance store of 250 GB = 232 GiB
        ("ml.g5.xlarge", 232, 232),
        ("ml.trn1.2xlarge", None, None),
        ("ml.r5d.large", None, None),
    ],
)
def test_a_volume_is_asked_for_where_there_is_no_instance_store(
    instance: str, disk: int | None, sent: int | None
) -> None:
    image = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/own:1"
    request = request_of(CPU, resources={"instance": instance, "disk_gib": disk}, environment={"image": image})
    assert request.native["ResourceConfig"].get("VolumeSizeInGB") == sent
    said = [choice.value for choice in request.chosen if choice.field == "resources.disk_gib"]
    assert said == (["100"] if sent == 100 and disk is None else [])
    fixed = [note for note in request.notes if note.startswith("resources.disk_gib")]
    assert bool(fixed) == (instance == "ml.g5.xlarge" and disk is not None)


def test_keys_go_to_outputs_and_to_volumes_but_not_to_instance_stores() -> None:
    key = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    on_volume, on_store = native_of(CPU, {"kms_key": key}), native_of(GPU, {"kms_key": key})
    assert on_volume["OutputDataConfig"]["KmsKeyId"] == on_store["OutputDataConfig"]["KmsKeyId"] == key
    assert on_volume["ResourceConfig"]["VolumeKmsKeyId"] == key
    assert "VolumeKmsKeyId" not in on_store["ResourceConfig"]


def test_a_vpc_comes_from_the_settings() -> None:
    request = request_of(GPU, {"subnets": "subnet-1,subnet-2", "security_groups": "sg-1"})
    assert request.native["VpcConfig"] == {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1", "subnet-2"]}
    assert any("traffic from and to itself" in note for note in request.notes)  # EFA wants both
    assert "VpcConfig" not in native_of(GPU)


def test_times_are_always_said() -> None:
    request = request_of(GPU)
    assert request.native["StoppingCondition"] == {"MaxRuntimeInSeconds": 86_400}
    assert ("limits.runtime", "1d") in [(choice.field, choice.value) for choice in request.chosen]
    assert "EnableManagedSpotTraining" not in request.native


def test_spot_waits_a_day_longer_than_it_runs_unless_told_otherwise() -> None:
    request = request_of(GPU, spot={"enabled": True}, limits={"runtime": "6h"})
    assert request.native["EnableManagedSpotTraining"] is True
    assert request.native["StoppingCondition"] == {"MaxRuntimeInSeconds": 21_600, "MaxWaitTimeInSeconds": 108_000}
    assert "spot.max_wait" in [choice.field for choice in request.chosen]
    told = native_of(GPU, spot={"enabled": True, "max_wait": "6h"}, limits={"runtime": "6h"})
    assert told["StoppingCondition"]["MaxWaitTimeInSeconds"] == 21_600


@pytest.mark.parametrize(
    ("base", "pending", "sent", "why"),
    [
        (GPU, "30m", 1800, ""),
        (GPU, "28d", 2_419_200, ""),
        (GPU, "29m", None, "1800 s to 2419200 s"),
        (GPU, "29d", None, "1800 s to 2419200 s"),
        (CPU, "2h", None, "not for ml.m5.xlarge"),
    ],
)
def test_waiting_is_the_services_to_limit_where_it_can(
    base: dict[str, object], pending: str, sent: int | None, why: str
) -> None:
    request = request_of(base, limits={"pending": pending})
    assert request.native["StoppingCondition"].get("MaxPendingTimeInSeconds") == sent
    assert json.loads(request.native["Environment"]["CLOUDTRAIN_POLICY"])["pending"] == pending
    notes = [note for note in request.notes if note.startswith("limits.pending")]
    assert [why in note for note in notes] == ([True] if why else [])


@pytest.mark.parametrize(("wanted", "sent"), [(10, 10), (1, 1), (0, None), (31, 30)])
def test_faults_of_the_platform_are_retried_natively(wanted: int, sent: int | None) -> None:
    request = request_of(GPU, retries={"preemption": wanted})
    assert request.native.get("RetryStrategy") == ({"MaximumRetryAttempts": sent} if sent else None)
    assert any("retries.preemption" in note for note in request.notes) == (wanted > 30)


def test_that_spot_jobs_are_repeated_however_often_is_said() -> None:
    """There is no field for a number of interruptions: the service goes on until the wait is over."""
    told = request_of(GPU, spot={"enabled": True}, retries={"preemption": 0})
    assert "RetryStrategy" not in told.native
    assert any("however often" in note for note in told.notes)
    assert not any("however often" in note for note in request_of(GPU, spot={"enabled": True}).notes)


def test_tags_hold_the_run() -> None:
    native = native_of(GPU, tags={"team": "vision", "Größe": "10 m²"})
    tags = {tag["Key"]: tag["Value"] for tag in native["Tags"]}
    run_id = native["TrainingJobName"].removesuffix("-a1")
    assert tags == {
        "team": "vision",
        "Größe": "10 m²",
        "cloudtrain:job": "digits",
        "cloudtrain:run": run_id,
        "cloudtrain:attempt": "1",
    }


def test_a_variable_of_the_greatest_length_fits() -> None:
    request = request_of(CPU, environment={"env": {"FITS": "v" * 512}})
    assert request.native["Environment"]["FITS"] == request.spec["env"]["FITS"] == "v" * 512


def test_as_many_variables_as_the_service_takes_fit() -> None:
    own = len(native_of(CPU)["Environment"])
    few = {f"V{number}": "x" for number in range(100 - own)}
    assert len(native_of(CPU, environment={"env": few})["Environment"]) == 100


def test_network_variables_are_those_of_the_type_and_the_jobs_own_win() -> None:
    alone, together = native_of(GPU, resources={"nodes": 1}), request_of(GPU)
    assert "FI_PROVIDER" not in alone["Environment"]
    assert together.native["Environment"]["FI_PROVIDER"] == "efa"
    assert "environment.env.FI_PROVIDER" in [choice.field for choice in together.chosen]
    own = request_of(GPU, environment={"env": {"FI_PROVIDER": "tcp"}})
    assert own.native["Environment"]["FI_PROVIDER"] == "tcp"
    assert "environment.env.FI_PROVIDER" not in [choice.field for choice in own.chosen]


@pytest.mark.parametrize(
    "reference",
    [
        "my/secret",
        "arn:aws:secretsmanager:eu-west-1:111122223333:secret:my/secret-AbCdEf",
        "arn:aws-cn:ssm:cn-north-1:111122223333:parameter/team/key",
    ],
)
def test_a_secret_is_a_reference_in_the_request(reference: str) -> None:
    native = native_of(CPU, environment={"secrets": {"KEY": {"sagemaker": reference}}})
    assert native["Environment"]["CLOUDTRAIN_SECRETREF_KEY"] == reference
    assert "KEY" not in native["Environment"]


def test_the_images_region_and_registry_are_remarked() -> None:
    elsewhere = request_of(GPU, environment={"image": "111122223333.dkr.ecr.us-east-1.amazonaws.com/t:1"})
    assert any("us-east-1" in note and "eu-west-1" in note for note in elsewhere.notes)
    outside = request_of(GPU, environment={"image": "docker.io/pytorch/pytorch:2.8"})
    assert any("TrainingRepositoryAccessMode" in note for note in outside.notes)
    here = request_of(GPU, environment={"image": "111122223333.dkr.ecr.eu-west-1.amazonaws.com/t:1"})
    assert not any("environment.image" in note for note in here.notes)


def test_overrides_are_merged_last_and_are_in_the_fingerprint() -> None:
    plain = native_of(GPU)
    changed = native_of(GPU, overrides={"sagemaker": {"StoppingCondition": {"MaxRuntimeInSeconds": 60}, "Tags": None}})
    assert changed["StoppingCondition"] == {"MaxRuntimeInSeconds": 60}
    assert "Tags" not in changed
    marks = [native["Environment"]["CLOUDTRAIN_FINGERPRINT"] for native in (plain, changed)]
    assert marks[0] != marks[1] and all(re.fullmatch("[0-9a-f]{64}", mark) for mark in marks)


def test_overrides_may_wrap_the_entry_point_and_spread_the_nodes() -> None:
    wrapped = ["/bin/sh", "-c", f"nvidia-smi; exec {' '.join(LAUNCH)}"]
    first, second = {"InstanceType": "ml.p4de.24xlarge"}, {"InstanceType": "ml.p4d.24xlarge"}
    native = native_of(
        GPU,
        overrides={
            "sagemaker": {
                "AlgorithmSpecification": {"ContainerEntrypoint": wrapped},
                "ResourceConfig": {"InstanceType": None, "InstancePreferences": [first, second]},
            }
        },
    )
    assert native["AlgorithmSpecification"]["ContainerEntrypoint"] == wrapped
    assert native["ResourceConfig"] == {"InstanceCount": 2, "InstancePreferences": [first, second]}


def test_fields_stand_in_the_order_of_the_service() -> None:
    from botocore.session import Session

    native = native_of(GPU, {"subnets": "subnet-1", "security_groups": "sg-1"}, spot={"enabled": True}, tags={"a": "b"})
    shape = Session().get_service_model("sagemaker").operation_model("CreateTrainingJob").input_shape
    order = list(shape.members)
    assert list(native) == sorted(native, key=order.index)
