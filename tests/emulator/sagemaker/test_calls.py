"""The calls about training jobs, by boto3; and what AWS takes and refuses, by its published limits."""

from __future__ import annotations

import json
import urllib.request
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from botocore.exceptions import ClientError

from tests.emulator.sagemaker.aws import BUCKET, IMAGE, REGION, ROLE, Aws, channel, opened, request, until

QUICK = "print('hello')"
WAITS = "import time\nprint('runs')\ntime.sleep(600)"


def _refused(call: Any, **asked: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as caught:
        call(**asked)
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


def _stop(aws: Aws, *names: str) -> None:
    for name in names:
        aws.sagemaker.stop_training_job(TrainingJobName=name)
    for name in names:
        aws.end(name)


def test_describe_tells_all_that_was_sent_but_the_tags(aws: Aws) -> None:
    sent = request(
        "echo",
        Environment={"CLOUDTRAIN_FINGERPRINT": "f", "PATHS": "a\nb"},
        HyperParameters={"lr": "0.1"},
        RetryStrategy={"MaximumRetryAttempts": 3},
        CheckpointConfig={"S3Uri": f"s3://{BUCKET}/kept/", "LocalPath": "/opt/ml/checkpoints"},
        EnableNetworkIsolation=True,
        EnableInterContainerTrafficEncryption=True,
        VpcConfig={"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]},
        RemoteDebugConfig={"EnableRemoteDebug": True},
        InfraCheckConfig={"EnableInfraCheck": True},
        Tags=[{"Key": "cloudtrain:run", "Value": "r"}],
    )
    aws.put("echo/code/program.py", QUICK)
    arn = aws.sagemaker.create_training_job(**sent)["TrainingJobArn"]
    told = aws.describe("echo")
    assert {name: told.get(name) for name in sent if name != "Tags"} == {
        name: value for name, value in sent.items() if name != "Tags"
    }
    assert "Tags" not in told
    assert aws.plane.requests[-1] == sent
    assert aws.sagemaker.list_tags(ResourceArn=arn)["Tags"] == sent["Tags"]
    aws.end("echo")


def test_tags_are_added_changed_and_removed(aws: Aws) -> None:
    arn = aws.describe(aws.submit("tagged", QUICK, Tags=[{"Key": "a", "Value": "1"}]))["TrainingJobArn"]
    aws.sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "a", "Value": "2"}, {"Key": "b", "Value": ""}])
    aws.sagemaker.delete_tags(ResourceArn=arn, TagKeys=["b"])
    assert aws.sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "a", "Value": "2"}]
    many = [{"Key": str(number), "Value": ""} for number in range(50)]
    assert _refused(aws.sagemaker.add_tags, ResourceArn=arn, Tags=many)[0] == "ValidationException"
    assert _refused(aws.sagemaker.list_tags, ResourceArn=arn + "x")[0] == "ValidationException"
    aws.end("tagged")


def test_a_name_belongs_to_one_job_until_that_is_deleted(aws: Aws) -> None:
    name = aws.submit("unique", WAITS)
    code, message = _refused(aws.sagemaker.create_training_job, **request(name))
    assert code == "ResourceInUse"
    assert "arn:aws:sagemaker:eu-west-1:111122223333:training-job/unique" in message
    assert _refused(aws.sagemaker.delete_training_job, TrainingJobName=name)[0] == "ResourceInUse"
    _stop(aws, name)
    aws.sagemaker.delete_training_job(TrainingJobName=name)
    assert _refused(aws.sagemaker.describe_training_job, TrainingJobName=name)[0] == "ValidationException"
    aws.submit(name, QUICK)
    assert aws.end(name)["TrainingJobStatus"] == "Completed"


def test_what_is_over_cannot_be_stopped(aws: Aws) -> None:
    aws.end(aws.submit("over", QUICK))
    assert _refused(aws.sagemaker.stop_training_job, TrainingJobName="over") == (
        "ValidationException",
        "The request was rejected because the training job is in status Completed.",
    )


def test_jobs_belong_to_their_region(aws: Aws) -> None:
    aws.end(aws.submit("here", QUICK))
    elsewhere = aws.client("sagemaker", region="us-west-2")
    refused = _refused(elsewhere.describe_training_job, TrainingJobName="here")
    assert refused == ("ValidationException", "Requested resource not found.")
    assert elsewhere.list_training_jobs()["TrainingJobSummaries"] == []


def test_nothing_of_a_job_can_be_changed(aws: Aws) -> None:
    aws.end(aws.submit("fixed", QUICK))
    change = {"TrainingJobName": "fixed", "ResourceConfig": {"KeepAlivePeriodInSeconds": 60}}
    assert _refused(aws.sagemaker.update_training_job, **change)[0] == "ValidationException"
    assert _refused(aws.sagemaker.list_models)[0] == "UnknownOperationException"


def test_lists_come_in_pages_and_filters_apply_to_a_page(tmp_path: Path) -> None:
    with opened(tmp_path) as aws:
        names = [f"{letter}-job" for letter in "cab"]
        for name in names:
            aws.end(aws.submit(name, "import sys\nsys.exit(1)" if name == "a-job" else QUICK))
        aws.end(aws.submit("other", QUICK))

        def listed(**asked: Any) -> list[list[str]]:
            pages, token = [], {}
            while True:
                page = aws.sagemaker.list_training_jobs(**asked, **token)
                pages.append([job["TrainingJobName"] for job in page["TrainingJobSummaries"]])
                if "NextToken" not in page:
                    return pages
                token = {"NextToken": page["NextToken"]}

        assert listed() == [["c-job", "a-job", "b-job", "other"]]  # by the time of their creation
        assert listed(SortOrder="Descending", MaxResults=3) == [["other", "b-job", "a-job"], ["c-job"]]
        assert listed(SortBy="Name", MaxResults=2) == [["a-job", "b-job"], ["c-job", "other"]]
        assert listed(NameContains="-job", SortBy="Name") == [["a-job", "b-job", "c-job"]]
        assert listed(StatusEquals="Failed", MaxResults=1) == [[], ["a-job"], [], []]
        assert listed(WarmPoolStatusEquals="InUse") == [[]]
        yesterday = aws.describe("b-job")["CreationTime"] - timedelta(days=1)
        for time in ("CreationTime", "LastModifiedTime"):
            assert listed(**{f"{time}After": yesterday, "NameContains": "other"}) == [["other"]]
            assert listed(**{f"{time}Before": yesterday}) == [[]]
        first = aws.sagemaker.list_training_jobs(MaxResults=1)["TrainingJobSummaries"][0]
        assert (first["TrainingJobStatus"], first["SecondaryStatus"]) == ("Completed", "Completed")
        wrong = {"SortBy": "Name", "NextToken": aws.sagemaker.list_training_jobs(MaxResults=1)["NextToken"]}
        assert _refused(aws.sagemaker.list_training_jobs, **wrong)[0] == "ValidationException"


LONG = {f"V{number}": "" for number in range(101)}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a name of 64 characters": ({"TrainingJobName": "x" * 64}, "trainingJobName"),
    "a name with an underscore": ({"TrainingJobName": "a_b"}, "trainingJobName"),
    "a name that ends with a hyphen": ({"TrainingJobName": "a-"}, "trainingJobName"),
    "101 variables": ({"Environment": LONG}, "environment"),
    "a variable of 513 characters": ({"Environment": {"A": "x" * 513}}, "environment.A"),
    "a variable that is none": ({"Environment": {"1A": "x"}}, "environment.1A"),
    "101 hyperparameters": ({"HyperParameters": LONG}, "hyperParameters"),
    "a hyperparameter of 2501 characters": ({"HyperParameters": {"a": "x" * 2501}}, "hyperParameters.a"),
    "21 channels": ({"InputDataConfig": [channel(f"c{n}", "echo/code/") for n in range(21)]}, "inputDataConfig"),
    "a channel's name of 65 characters": ({"InputDataConfig": [channel("c" * 65, "a/")]}, "inputDataConfig.1.member"),
    "two channels of one name": ({"InputDataConfig": [channel("code", "a/")] * 2}, "inputDataConfig.2.member"),
    "31 retries": ({"RetryStrategy": {"MaximumRetryAttempts": 31}}, "retryStrategy.maximumRetryAttempts"),
    "29 days": ({"StoppingCondition": {"MaxRuntimeInSeconds": 29 * 86400}}, "stoppingCondition.maxRuntimeInSeconds"),
    "a wait without spot": (
        {"StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60}},
        "stoppingCondition.maxWaitTimeInSeconds",
    ),
    "spot without a wait": ({"EnableManagedSpotTraining": True}, "stoppingCondition.maxWaitTimeInSeconds"),
    "a wait below the runtime": (
        {
            "EnableManagedSpotTraining": True,
            "StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 59},
        },
        "stoppingCondition.maxWaitTimeInSeconds",
    ),
    "a machine that does not exist": (
        {"ResourceConfig": {"InstanceType": "ml.nope.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30}},
        "resourceConfig.instanceType",
    ),
    "no machines": (
        {"ResourceConfig": {"InstanceType": "ml.m5.xlarge", "InstanceCount": 0, "VolumeSizeInGB": 30}},
        "resourceConfig.instanceCount",
    ),
    "no disk for a machine without": (
        {"ResourceConfig": {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1}}, "resourceConfig.volumeSizeInGB",
    ),
    "no role": ({"RoleArn": "arn:aws:iam::1:user/me-and-nobody-else"}, "roleArn"),
    "an input mode that is none": (
        {"AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "Quick"}}, "trainingInputMode",
    ),
    "101 words to start with": (
        {"AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "File",
                                    "ContainerEntrypoint": ["x"] * 101}}, "containerEntrypoint",
    ),
    "51 tags": ({"Tags": [{"Key": str(n), "Value": ""} for n in range(51)]}, "tags"),
    "a tag of AWS's own": ({"Tags": [{"Key": "aws:x", "Value": ""}]}, "tags.1.member.key"),
    "17 subnets": ({"VpcConfig": {"SecurityGroupIds": ["sg-1"], "Subnets": ["s"] * 17}}, "vpcConfig.subnets"),
    "no stopping condition": ({"StoppingCondition": None}, "stoppingCondition"),
    "an image of nowhere": (
        {"AlgorithmSpecification": {"TrainingImage": "pytorch:latest", "TrainingInputMode": "File"}},
        "Invalid training image",
    ),
    "a bucket that is not there": (
        {"InputDataConfig": [{"ChannelName": "code", "DataSource": {"S3DataSource": {
            "S3DataType": "S3Prefix", "S3Uri": "s3://nobodys/code/"}}}]},
        'No S3 objects found under S3 URL "s3://nobodys/code/" given in input data source.',
    ),
    "a bucket that cannot be": (
        {"InputDataConfig": [{"ChannelName": "code", "DataSource": {"S3DataSource": {
            "S3DataType": "S3Prefix", "S3Uri": "s3://b @d/code/"}}}]},
        'No S3 objects found under S3 URL "s3://b @d/code/"',
    ),
    "a channel without an object": (
        {"InputDataConfig": [channel("code", "nothing/here/")]},
        f'No S3 objects found under S3 URL "s3://{BUCKET}/nothing/here/" given in input data source. Please ensure '
        f'that the bucket exists in the selected region ({REGION}), that objects exist under that S3 prefix, and that '
        f'the role "{ROLE}" has "s3:ListBucket" permissions on bucket "{BUCKET}".',
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_the_service_refuses_is_refused_in_its_words(aws: Aws, what: str) -> None:
    changes, told = REFUSED[what]
    aws.put("refused/code/program.py", QUICK)
    code, message = _refused(aws.sagemaker.create_training_job, **request("refused", **changes))
    assert code == "ValidationException"
    assert told in message
    assert _refused(aws.sagemaker.describe_training_job, TrainingJobName="refused")[0] == "ValidationException"


TAKEN: dict[str, dict[str, Any]] = {
    "a name of 63 characters": {"TrainingJobName": "y" * 63},
    "100 variables of 512 characters": {"Environment": {f"V{number}": "x" * 512 for number in range(100)}},
    "20 channels": {
        "InputDataConfig": [channel("code", "taken/code/"), *(channel(f"c{n}", "taken/code/") for n in range(19))]
    },
    "30 retries": {"RetryStrategy": {"MaximumRetryAttempts": 30}},
    "28 days": {"StoppingCondition": {"MaxRuntimeInSeconds": 28 * 86400}},
    "an image of one's own": {
        "AlgorithmSpecification": {
            "TrainingImage": "111122223333.dkr.ecr.eu-west-1.amazonaws.com/my/train@sha256:" + "a" * 64,
            "TrainingInputMode": "FastFile",
        }
    },
    "a registry inside the VPC": {
        "AlgorithmSpecification": {
            "TrainingImage": "registry.example.com/train:1",
            "TrainingInputMode": "File",
            "TrainingImageConfig": {"TrainingRepositoryAccessMode": "Vpc"},
        }
    },
}


@pytest.mark.parametrize("what", TAKEN)
def test_what_is_within_the_limits_is_taken(aws: Aws, what: str) -> None:
    aws.put("taken/code/program.py", QUICK)
    asked = {"TrainingJobName": f"taken-{list(TAKEN).index(what)}", **TAKEN[what]}
    made = request("taken", **{"InputDataConfig": [channel("code", "taken/code/")], **asked})
    aws.sagemaker.create_training_job(**made)
    _stop(aws, made["TrainingJobName"])


def test_what_is_over_the_quota_is_refused_at_once(aws: Aws) -> None:
    aws.put("no-quota/code/program.py", QUICK)
    code, message = _refused(aws.sagemaker.create_training_job, **request("no-quota"))
    assert code == "ResourceLimitExceeded"
    assert "'ml.m5.xlarge for training job usage' is 0 Instances" in message
    assert "a request delta of 1 Instances" in message
    assert _refused(aws.sagemaker.describe_training_job, TrainingJobName="no-quota")[0] == "ValidationException"


def test_a_bucket_of_another_region_is_not_found(aws: Aws) -> None:
    aws.put("far/code/program.py", QUICK)
    far = aws.client("sagemaker", region="us-east-1")
    assert "selected region (us-east-1)" in _refused(far.create_training_job, **request("far"))[1]


def _post(url: str, body: bytes, **headers: str) -> tuple[int, dict[str, Any]]:
    sent = urllib.request.Request(url, body, {"X-Amz-Target": "SageMaker.ListTrainingJobs", **headers})
    try:
        with urllib.request.urlopen(sent) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_other_peoples_clients_are_answered_too(aws: Aws) -> None:
    signed = {
        "Authorization": "AWS4-HMAC-SHA256 Credential=AKIA/20260101/eu-west-1/sagemaker/aws4_request, Signature=x"
    }
    assert _post(aws.url, b"{}")[0] == 403
    assert _post(aws.url, b"{", **signed) == (400, {"__type": "SerializationException",
                                                    "message": "The request's body is no JSON object."})  # fmt: skip
    assert _post(aws.url, b"[" * 100_000, **signed)[1]["__type"] == "SerializationException"
    assert _post(aws.url, b'{"MaxResults": 101}', **signed)[1]["__type"] == "ValidationException"
    assert _post(aws.url, b'{"MaxResults": "1"}', **signed)[1]["__type"] == "ValidationException"
    assert "TrainingJobSummaries" in _post(aws.url, b"", **signed)[1]


def test_the_fault_file_reaches_every_service(tmp_path: Path) -> None:
    faults = """
calls:
  - {operation: DescribeTrainingJob, fault: throttle, times: 2}
  - {operation: CreateTrainingJob, fault: lost}
  - {operation: PutObject, fault: error, status: 503}
  - {operation: GetObject, fault: expired-token}
  - {operation: GetCallerIdentity, fault: expired-token}
  - {operation: ListTrainingJobs, fault: throttle}
"""
    with opened(tmp_path, faults=faults) as aws:
        assert _refused(aws.sagemaker.list_training_jobs)[0] == "ThrottlingException"
        assert _refused(aws.s3.put_object, Bucket=BUCKET, Key="k", Body=b"")[0] == "ServiceUnavailable"
        aws.put("k")
        assert _refused(aws.s3.get_object, Bucket=BUCKET, Key="k")[0] == "ExpiredToken"
        sts = aws.client("sts")
        assert _refused(sts.get_caller_identity)[0] == "ExpiredTokenException"
        assert sts.get_caller_identity()["Account"] in aws.variables["CLOUDTRAIN_SAGEMAKER_ROLE"]
        patient = aws.client("sagemaker", attempts=5)
        aws.put("lost/code/program.py", QUICK)
        # The answer is lost, botocore asks again, and the name is taken.
        assert _refused(patient.create_training_job, **request("lost"))[0] == "ResourceInUse"
        assert patient.describe_training_job(TrainingJobName="lost")["TrainingJobName"] == "lost"
        until(lambda: aws.describe("lost")["TrainingJobStatus"] == "Completed", "the job ends")
