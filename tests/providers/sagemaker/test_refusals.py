"""What SageMaker cannot do is refused at its place in the job file, with the limit or the reason."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers.sagemaker.jobs import CPU, GPU, refused

KMS = "arn:aws:kms:us-east-1:111122223333:key/1"
PREFERENCES = {
    "InstanceType": None,
    "InstanceCount": None,
    "InstancePreferences": [
        {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 2},
        {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1},
    ],
}
MANY = {f"c{number}": {"uri": "s3://data-bucket/x/"} for number in range(19)}


@pytest.mark.parametrize(
    ("changes", "key", "said"),
    [
        ({"resources": {"shm_gib": 8}}, "resources.shm_gib", "no setting for shared memory"),
        ({"resources": {"disk_gib": 7451}}, "resources.disk_gib", "7450 GiB"),  # 8000 GB
        ({"data": {"t": {"uri": "s3://bucket/x/", "mode": "stream"}}}, "data.t.mode", "mount streams"),
        ({"data": {"t": {"uri": "gs://bucket/x"}}}, "data.t.uri", "s3://"),
        ({"data": {"t": {"uri": {"vertex": "gs://bucket/x"}}}}, "data.t.uri", "data.t.uri.sagemaker"),
        ({"data": {"t": {"uri": {"sagemaker": "fs-0123456789"}}}}, "data.t.uri.sagemaker", "InputDataConfig"),
        ({"data": {"t": {"uri": "s3://-b/x"}}}, "data.t.uri", "no bucket"),
        ({"environment": {"env": {"LONG": "v" * 513}}}, "environment.env.LONG", "513 characters, at most 512"),
        (
            {"environment": {"env": {f"V{n}": "x" for n in range(100)}}},
            "environment.env",
            "SageMaker takes at most 100",
        ),
        ({"data": {"t": {"uri": "s3://bucket/a\nb"}}}, "data.t.uri", "control character"),
        ({"data": {"t": {"uri": "s3://bucket/" + "x" * 1020}}}, "data.t.uri", "1024"),
        # launch.py takes no channel that begins so for data
        ({"data": {"cloudtrain_more": {"uri": "s3://bucket/x"}}}, "data.cloudtrain_more", "take another name"),
        ({"data": {"c" * 65: {"uri": "s3://bucket/x"}}}, "data." + "'" + "c" * 49 + "...cccc'", "64"),
        ({"data": MANY}, "data", "at most 20"),
        ({"outputs": {"m": "out/m"}}, "outputs.m", "s3://"),
        ({"outputs": {"m": "s3://bucket/" + "x" * 500}}, "outputs.m", "at most 512"),
        ({"checkpoint": {"uri": {"sagemaker": "/ck"}}}, "checkpoint.uri.sagemaker", "s3://"),
        ({"spot": {"max_wait": "12h"}}, "spot.max_wait", "spot.enabled"),
        ({"spot": {"enabled": True, "max_wait": "1h"}, "limits": {"runtime": "2h"}}, "spot.max_wait", "2h"),
        ({"spot": {"enabled": True, "max_wait": "23h"}}, "spot.max_wait", "86400 s, the default"),
        ({"limits": {"runtime": "29d"}}, "limits.runtime", "28d"),
        ({"tags": {"aws:x": "y"}}, "tags.'aws:x'", "reserved for AWS"),
        ({"tags": {"AWS:x": "y"}}, "tags.'AWS:x'", "reserved for AWS"),
        ({"tags": {"a;b": "y"}}, "tags.'a;b'", "';'"),
        ({"tags": {"a": "1,2"}}, "tags.a", "','"),
        ({"tags": {"cloudtrain:run": "y"}}, "tags.'cloudtrain:run'", "cloudtrain finds its runs"),
        ({"tags": {f"t{number}": "x" for number in range(48)}}, "tags", "at most 50"),
        ({"environment": {"image": "a b"}}, "environment.image", "no image"),
        ({"environment": {"image": {"sagemaker": "r/" + "i" * 254}}}, "environment.image.sagemaker", "255"),
        ({"environment": {"torch": "1.0"}}, "environment.torch", "1.0"),
        ({"environment": {"secrets": {"K": "https://vault/k"}}}, "environment.secrets.K", "no reference"),
        ({"environment": {"secrets": {"K": {"vertex": "k"}}}}, "environment.secrets.K", "K.sagemaker"),
        ({"environment": {"secrets": {"K": {"sagemaker": "k" * 513}}}}, "environment.secrets.K.sagemaker", "512"),
        (
            {"environment": {"secrets": {f"K{number}": "k" for number in range(100)}}},
            "environment.secrets",
            "at most 100",
        ),
        ({"overrides": {"sagemaker": {"TrainingJobName": "x"}}}, "overrides.sagemaker.TrainingJobName", "name:"),
        (
            {"overrides": {"sagemaker": {"Environment": {"CLOUDTRAIN_SPEC": "x"}}}},
            "overrides.sagemaker.Environment.CLOUDTRAIN_SPEC",
            "set by cloudtrain",
        ),
        ({"overrides": {"sagemaker": {"Environment": None}}}, "overrides.sagemaker.Environment", "single ones"),
        (
            {"overrides": {"sagemaker": {"Environment": {"CLOUDTRAIN_SPEC": None}}}},
            "overrides.sagemaker.Environment.CLOUDTRAIN_SPEC",
            "set by cloudtrain",
        ),
        (
            {"overrides": {"sagemaker": {"AlgorithmSpecification": {"ContainerEntrypoint": ["python3", "train.py"]}}}},
            "overrides.sagemaker.AlgorithmSpecification",
            "no longer starts /opt/ml/input/data/cloudtrain_code/launch.py",
        ),
        (
            {"overrides": {"sagemaker": {"InputDataConfig": []}}},
            "overrides.sagemaker.InputDataConfig",
            "lost cloudtrain_code",
        ),
        (
            {"overrides": {"sagemaker": {"InputDataConfig": {"1": None}}}},
            "overrides.sagemaker.InputDataConfig",
            "lost cloudtrain_spec",
        ),
        (
            {"overrides": {"sagemaker": {"ResourceConfig": {"InstanceCount": 4}}}},
            "overrides.sagemaker.ResourceConfig",
            "asks for 4 nodes and the job for 2",
        ),
        (
            {"overrides": {"sagemaker": {"ResourceConfig": PREFERENCES}}},
            "overrides.sagemaker.ResourceConfig",
            "asks for 1 or 2 nodes",
        ),
        ({"framework": "jax"}, "framework", "one process per node"),
    ],
)
def test_a_field_is_refused(changes: dict[str, Any], key: str, said: str) -> None:
    (problem,) = refused(GPU, **changes)
    assert problem.startswith(f"{key}: ")
    assert said in problem


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"environment": {"requirements": "r.txt"}}, "environment.requirements"),
        ({"environment": {"secrets": {"K": "my/secret"}}}, "environment.secrets"),
        ({"outputs": {"m": "s3://bucket/m/"}}, "outputs"),
    ],
)
def test_a_container_without_network_cannot_fetch_or_send(changes: dict[str, Any], key: str) -> None:
    (problem,) = refused(GPU, **changes, overrides={"sagemaker": {"EnableNetworkIsolation": True}})
    assert problem.startswith(f"{key}: cannot work with EnableNetworkIsolation")


def test_a_secret_that_is_no_reference_is_not_repeated() -> None:
    (problem,) = refused(CPU, environment={"secrets": {"KEY": {"sagemaker": "hunter2!"}}})
    assert "hunter2" not in problem


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"subnets": "subnet-1"}, "security_groups: is needed beside subnets"),
        ({"security_groups": "sg-1"}, "subnets: is needed beside security_groups"),
        ({"subnets": ",".join(["s-1"] * 17), "security_groups": "sg-1"}, "17 given, at most 16"),
        ({"subnets": "s-1", "security_groups": ",".join(["sg-1"] * 6)}, "6 given, at most 5"),
        ({"subnets": "s" * 33, "security_groups": "sg-1"}, "33 characters, at most 32"),
        ({"kms_key": KMS}, "is a key of us-east-1, and the job runs in eu-west-1"),
        ({"kms_key": "a key"[:1] + "!"}, "2048 characters of"),
        ({"role": "arn:aws-cn:iam::111122223333:role/r"}, "is of aws-cn, and eu-west-1 belongs to aws"),
        ({"region": "us-gov-west-1"}, "is of aws, and us-gov-west-1 belongs to aws-us-gov"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, str], said: str) -> None:
    problems = refused(GPU, settings)
    assert len(problems) == 1 and problems[0].startswith("setting sagemaker.") and said in problems[0]


def test_all_is_told_at_once() -> None:
    problems = refused(
        CPU,
        resources={"shm_gib": 1},
        data={"t": {"uri": "gs://bucket/x"}},
        outputs={"m": "x"},
        spot={"max_wait": "1h"},
        limits={"runtime": "29d"},
        tags={"aws:a": "b"},
    )
    assert len(problems) == 6


def test_a_machine_that_does_not_exist_is_one_problem() -> None:
    (problem,) = refused(CPU, resources={"instance": None, "accelerator": "H100-NVL"})
    assert problem.startswith("resources.accelerator: ")
