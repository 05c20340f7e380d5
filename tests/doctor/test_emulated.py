"""Against the three emulated clouds: all is well; then a bucket, a region, a role, a workspace that are not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from cloudtrain.emulator import Emulator
from tests.doctor.looking import Said, doctor

_JOB = """
name: small
entry: train.py
environment: {image: IMAGE}
resources: {nodes: 2, instance: ml.c5.xlarge}
"""


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with Emulator() as emulator:
        assert emulator.missing == {}
        yield emulator


@pytest.fixture(scope="module")
def env(emulator: Emulator, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {**emulator.environment(), "CLOUDTRAIN_HOME": str(tmp_path_factory.mktemp("home"))}


@pytest.fixture
def aws(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """boto3's clients at the emulator."""
    for name, value in env.items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    return boto3.session.Session(region_name="us-east-1")


def test_three_clouds_with_nothing_wrong(env: dict[str, str], tmp_path: Path) -> None:
    said = doctor(tmp_path, env=env)
    assert (said.code, [check for check in said.checks if check["verdict"] in ("problem", "warning")]) == (0, [])
    assert said.verdicts("sagemaker") == {
        "packages": "ok", "credentials": "ok", "identity": "ok", "bucket": "ok", "writing": "not checked",
        "role": "ok", "passing the role": "not checked", "SageMaker": "ok", "image": "not checked",
        "quota": "not checked",
    }  # fmt: skip
    assert said.verdicts("vertex") == {
        "packages": "ok", "credentials": "ok", "bucket": "ok", "writing": "not checked", "service account": "ok",
        "Vertex AI": "ok", "Cloud Logging": "ok", "image": "not checked", "quota": "not checked",
    }  # fmt: skip
    assert said.verdicts("azureml") == {
        "packages": "ok", "credentials": "ok", "workspace": "ok", "jobs": "ok", "datastore": "ok", "files": "ok",
        "compute": "ok", "image": "not checked", "quota": "not checked",
    }  # fmt: skip
    simulated = said.of("sagemaker")["passing the role"]["found"]
    assert simulated.endswith(": NotEmulated: the emulator does not have SimulatePrincipalPolicy")
    region = said.of("sagemaker")["setting region"]
    assert region["found"] == "us-east-1, from CLOUDTRAIN_SAGEMAKER_REGION"
    key = env["AWS_ACCESS_KEY_ID"]
    assert f"...{key[-4:]}, which boto3 has by env" in said.of("sagemaker")["credentials"]["found"]
    assert key not in said.out


def test_what_is_not_there(env: dict[str, str], tmp_path: Path) -> None:
    wrong = (
        "sagemaker.bucket=no-such-bucket", "sagemaker.role=arn:aws:iam::111122220000:role/Elses",
        "vertex.bucket=no-such-bucket", "vertex.region=europe-west4",
        "azureml.compute=no-such-cluster", "azureml.datastore=nix",
    )  # fmt: skip
    said = doctor(tmp_path, *(word for setting in wrong for word in ("--set", setting)), env=env)
    assert said.code == 3
    problems = {
        (check["of"], check["name"]): (check["found"], check["next"])
        for check in said.checks if check["verdict"] == "problem"
    }  # fmt: skip
    assert problems.keys() == {
        ("sagemaker", "bucket"), ("sagemaker", "role"), ("vertex", "bucket"), ("azureml", "datastore"),
        ("azureml", "files"), ("azureml", "compute"),
    }  # fmt: skip
    found, then = problems["sagemaker", "bucket"]
    assert (found, then.split(",")[0]) == (
        "there is no bucket no-such-bucket", "aws s3 mb s3://no-such-bucket --region us-east-1"
    )  # fmt: skip
    assert "of account 111122220000" in problems["sagemaker", "role"][0]
    assert problems["vertex", "bucket"][0] == "there is no bucket gs://no-such-bucket"
    assert problems["azureml", "compute"][0] == "there is no compute no-such-cluster in the workspace"


def test_a_bucket_of_another_region_an_image_and_a_role(env: dict[str, str], tmp_path: Path, aws: Any) -> None:
    s3, ecr, iam, sts = (aws.client(name) for name in ("s3", "ecr", "iam", "sts"))
    s3.create_bucket(Bucket="far-away", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    account = sts.get_caller_identity()["Account"]
    ecr.create_repository(repositoryName="train")
    iam.create_role(RoleName="for-machines", AssumeRolePolicyDocument='{"Statement": [{"Principal": "ec2"}]}')
    for client in (s3, ecr, iam, sts):
        client.close()
    image = f"{account}.dkr.ecr.us-east-1.amazonaws.com/train:1"
    (tmp_path / "job.yaml").write_text(_JOB.replace("IMAGE", image))
    (tmp_path / "train.py").write_text("")
    words = ("--set", "bucket=far-away", "--set", f"role=arn:aws:iam::{account}:role/for-machines")
    said = doctor(tmp_path, "--provider", "sagemaker", *words, env=env)
    found = said.of("sagemaker")
    assert found["bucket"]["found"] == "far-away lies in eu-west-1, and the settings' region is us-east-1"
    assert "does not let SageMaker assume it" in found["role"]["found"]
    assert (found["image"]["verdict"], found["image"]["next"]) == (
        "problem", "push it to us-east-1, or set environment.image"
    )  # fmt: skip
    assert image in found["image"]["found"]
    assert found["quota"]["verdict"] == "not checked"
    assert "ml.c5.xlarge for training job usage" in found["quota"]["found"]
    assert {check["of"] for check in said.checks} == {"machine", "sagemaker"}


def test_a_workspace_and_a_region_that_are_others(env: dict[str, str], tmp_path: Path) -> None:
    words = ("--set", "azureml.workspace=elsewhere", "--set", "vertex.region=europe-west4")
    said = doctor(tmp_path, "--provider", "azureml", "--provider", "vertex", *words, env=env)
    workspace, bucket = said.of("azureml")["workspace"], said.of("vertex")["bucket"]
    assert workspace["found"].startswith("there is no workspace elsewhere in resource group emulated")
    assert "lies in US-CENTRAL1, and the settings' region is europe-west4" in bucket["found"]


def test_the_table(env: dict[str, str], tmp_path: Path) -> None:
    said: Said = doctor(tmp_path, "--provider", "vertex", "--set", "bucket=nix-da", env=env, form="")
    lines = said.out.splitlines()
    assert (said.code, lines[0], lines[-1]) == (3, "this machine", "1 problem")
    number = next(n for n, line in enumerate(lines) if line.split()[:2] == ["problem", "bucket"])
    assert lines[number].endswith("there is no bucket gs://nix-da")
    assert lines[number + 1].split()[:5] == ["->", "gcloud", "storage", "buckets", "create"]
