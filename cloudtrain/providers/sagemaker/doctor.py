"""What ``cloudtrain doctor`` asks of AWS: the bucket, the role, the service, the image, the quota. Nothing is written.

Whether the caller may do something is asked of IAM's policy simulator, which itself needs a right that few have.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from cloudtrain.errors import CloudtrainError, RefusedError, UnreachableError
from cloudtrain.providers.paging import Tokens
from cloudtrain.providers.questions import NO_JOB, Check, Question, Signed, Unknown
from cloudtrain.providers.reading import entries, text
from cloudtrain.providers.sagemaker.account import account_problems
from cloudtrain.providers.sagemaker.errors import asking
from cloudtrain.providers.sagemaker.refusals import LOG_IN
from cloudtrain.providers.sagemaker.said import said
from cloudtrain.settings import Settings

_VARIABLES = (
    "AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)  # fmt: skip
_FILES = {"AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials", "AWS_CONFIG_FILE": "~/.aws/config"}
_CONNECT_SECONDS, _READ_SECONDS, _TRIES = 3, 8, 2
_ECR = re.compile(
    r"(?P<account>\d{12})\.dkr\.ecr(-fips)?\.(?P<region>[a-z0-9-]+)\.[a-z0-9.-]+/"
    r"(?P<repository>[^:@\s]+)(:(?P<tag>[^@\s]+))?(@(?P<digest>\S+))?"
)
_PRINCIPAL = "sagemaker.amazonaws.com"
_NO_RIGHT = "permission"


def traces() -> Iterator[str]:
    """Variables and files of boto3's; see ``check.Doctor``."""
    yield from (name for name in _VARIABLES if os.environ.get(name))
    for variable, usual in _FILES.items():
        file = Path(os.environ.get(variable) or usual).expanduser()
        if file.is_file():
            yield str(file)


def load() -> None:
    """See ``check.Doctor``."""
    for name in ("boto3.session", "botocore.config", "botocore.parsers", "s3transfer.exceptions"):
        import_module(name)


class Aws:
    """boto3's clients with short timeouts, and whose credentials they have."""

    def __init__(self, session: Any, region: str) -> None:
        self._session = session
        self._lock = threading.Lock()
        self.region = region
        self.arn = ""
        """Of the caller; "" if STS has not said it."""

    def client(self, name: str, region: str = "") -> Any:
        """Making one is nothing for two threads at once."""
        from botocore.config import Config

        config = Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": _TRIES},
            user_agent_extra="cloudtrain",
        )
        with self._lock, asking(f"use {name}", self.region):
            return self._session.client(name, region_name=region or self.region, config=config)

    @property
    def account(self) -> str:
        """The number of the caller's account, "" if it is not known."""
        found = re.match(r"arn:[^:]*:[^:]*:[^:]*:(\d{12}):", self.arn)
        return found[1] if found else ""


def sign_in(settings: Settings) -> Signed:
    """boto3's own search for credentials, then the question whose they are."""
    from boto3.session import Session

    region = settings["region"]
    with asking("find credentials", region):
        session = Session(region_name=region)
        credentials = session.get_credentials()
        if credentials is None:
            return Signed((Check("credentials", "problem", "boto3 finds none", LOG_IN),))
        key = str(credentials.get_frozen_credentials().access_key)
    found = Check("credentials", "ok", f"access key ...{key[-4:]}, which boto3 has by {credentials.method}")
    aws = Aws(session, region)
    return Signed((found, _caller(aws)), aws)


def _caller(aws: Aws) -> Check:
    try:
        with asking("ask who the credentials are of", aws.region):
            answer = aws.client("sts").get_caller_identity()
    except CloudtrainError as error:
        return Check("identity", "problem", error.message, error.hint or LOG_IN)
    aws.arn = text(answer, "Arn")
    return Check("identity", "ok" if aws.arn else "problem", said(aws.arn) or "STS does not say who this is")


def questions(settings: Settings, caller: Any, native: Mapping[str, Any] | None) -> Sequence[Question]:
    """See ``check.Doctor``."""
    aws: Aws = caller
    return (
        Question("bucket", lambda: _bucket(aws, settings), ("bucket", "region")),
        Question("writing", lambda: _writing(aws, settings), ("bucket", "region")),
        Question("role", lambda: _role(aws, settings), ("role",)),
        Question("passing the role", lambda: _passing(aws, settings), ("role",)),
        Question("SageMaker", lambda: _service(aws), ("region",)),
        Question("image", lambda: _image(aws, text(native, "AlgorithmSpecification", "TrainingImage"))),
        Question("quota", lambda: _quota(aws, native), ("region",)),
    )


def _bucket(aws: Aws, settings: Settings) -> Check:
    """HEAD answers without a body: what is wrong is in its status, and the bucket's region in a header."""
    from botocore.exceptions import ClientError

    bucket, region, s3 = settings["bucket"], settings["region"], aws.client("s3")
    with asking(f"look at bucket {bucket}", region):
        try:
            answer: Any = s3.head_bucket(Bucket=bucket)
        except ClientError as error:
            answer = error.response
    said_of = answer.get("ResponseMetadata", {})
    status, lies_in = said_of.get("HTTPStatusCode"), said_of.get("HTTPHeaders", {}).get("x-amz-bucket-region", "")
    if lies_in and lies_in != region:
        how = "a bucket must be in the region of the job: set sagemaker.bucket or sagemaker.region"
        return Check(
            "bucket", "problem", f"{bucket} lies in {said(lies_in)}, and the settings' region is {region}", how
        )
    if status == 404:
        how = f"aws s3 mb s3://{bucket} --region {region}, or set sagemaker.bucket"
        return Check("bucket", "problem", f"there is no bucket {bucket}", how)
    if status == 403:
        how = f"ask for s3:ListBucket on arn:aws:s3:::{bucket}, or set sagemaker.bucket: it may be somebody else's"
        return Check("bucket", "problem", f"these credentials may not look at {bucket}", how)
    if status != 200:
        raise UnreachableError(f"S3 answers for bucket {bucket} with status {status}", hint="try again")
    return Check("bucket", "ok", f"s3://{bucket}, in {said(lies_in) or 'a region that S3 does not say'}")


def _writing(aws: Aws, settings: Settings) -> Check:
    objects = f"arn:aws:s3:::{settings['bucket']}/{settings['prefix']}/*"
    return _may(aws, "writing", "s3:PutObject", objects)


def _role(aws: Aws, settings: Settings) -> Check:
    role = settings["role"]
    for _, flaw in account_problems(settings):
        return Check("role", "problem", flaw, "set sagemaker.role, sagemaker.region and the like so that they fit")
    account = role.split(":")[4]
    if aws.account and account != aws.account:
        found = f"{role} is of account {account}, the credentials are of {aws.account}"
        return Check("role", "problem", found, "set sagemaker.role, or take credentials of that account: AWS_PROFILE")
    try:
        with asking(f"look at role {role}", aws.region):
            answer = aws.client("iam").get_role(RoleName=role.rpartition("/")[2])
    except RefusedError as error:
        if error.cause == _NO_RIGHT:
            raise Unknown(f"{role}: {error.message}; a submit needs no such right") from None
        if "NoSuchEntity" in error.message:
            return Check("role", "problem", f"there is no role {role}", "make it, or set sagemaker.role")
        raise
    trust = json.dumps(answer.get("Role", {}).get("AssumeRolePolicyDocument", {}))
    if _PRINCIPAL not in trust:
        how = f"add {_PRINCIPAL} to the role's trust policy, for sts:AssumeRole"
        return Check("role", "problem", f"{role} does not let SageMaker assume it", how)
    return Check("role", "ok", f"{role}, which SageMaker may assume")


def _passing(aws: Aws, settings: Settings) -> Check:
    return _may(aws, "passing the role", "iam:PassRole", settings["role"])


def _may(aws: Aws, name: str, action: str, resource: str) -> Check:
    """Asks the policy simulator about the caller, who may be a user or have assumed a role."""
    if not aws.arn:
        raise Unknown(f"it needs {action} on {resource}, and who asks is not known")
    if aws.arn.endswith(":root"):
        return Check(name, "ok", "the account's root user may do all")
    who = re.sub(r"^arn:([^:]*):sts:(.*):assumed-role/([^/]+)/.*$", r"arn:\1:iam:\2:role/\3", aws.arn)
    try:
        with asking(f"ask IAM whether {action} is allowed", aws.region):
            answer = aws.client("iam").simulate_principal_policy(
                PolicySourceArn=who, ActionNames=[action], ResourceArns=[resource]
            )
    except CloudtrainError as error:
        raise Unknown(f"it needs {action} on {resource}; {error.message}") from None
    decisions = [text(result, "EvalDecision") for result in entries(answer, "EvaluationResults")]
    if decisions == ["allowed"]:
        return Check(name, "ok", f"{action} on {resource} is allowed")
    if "explicitDeny" in decisions or "implicitDeny" in decisions:
        found = f"IAM's simulator says {decisions[0]} for {action} on {resource}"
        return Check(name, "warning", found, f"ask for {action} on {resource}, if a submit is refused")
    raise Unknown(f"it needs {action} on {resource}; IAM's answer makes no sense")


def _service(aws: Aws) -> Check:
    with asking("list training jobs", aws.region):
        answer = aws.client("sagemaker").list_training_jobs(MaxResults=1)
    if not isinstance(answer.get("TrainingJobSummaries"), list):
        raise UnreachableError(f"SageMaker's answer in {aws.region} makes no sense", hint="check AWS_ENDPOINT_URL")
    return Check("SageMaker", "ok", f"answers in {aws.region}, and lists its training jobs")


def _image(aws: Aws, uri: str) -> Check:
    """Of a registry of one's own ECR knows all; others, AWS's own among them, need not let anybody look."""
    if not uri:
        raise Unknown(NO_JOB)
    found = _ECR.fullmatch(uri)
    if found is None:
        raise Unknown(f"{uri} is not in ECR")
    image = {"imageDigest": found["digest"]} if found["digest"] else {"imageTag": found["tag"] or "latest"}
    own = found["account"] == aws.account
    try:
        with asking(f"look at image {uri}", found["region"]):
            answer = aws.client("ecr", found["region"]).describe_images(
                registryId=found["account"], repositoryName=found["repository"], imageIds=[image]
            )
    except RefusedError as error:
        if not own or error.cause == _NO_RIGHT:
            whose = "" if own else f", of account {found['account']}"
            raise Unknown(f"{uri}{whose}: {error.message}") from None
        return Check("image", "problem", error.message, f"push it to {found['region']}, or set environment.image")
    if not answer.get("imageDetails"):
        raise Unknown(f"{uri}: ECR's answer makes no sense")
    return Check("image", "ok", uri)


def _quota(aws: Aws, native: Mapping[str, Any] | None) -> Check:
    """Instances of the job's type. Service Quotas has codes, which differ by type; the names say which is meant."""
    machine = text(native, "ResourceConfig", "InstanceType")
    if not machine:
        raise Unknown(NO_JOB)
    wanted = int((native or {})["ResourceConfig"].get("InstanceCount", 1))
    use = "spot training" if (native or {}).get("EnableManagedSpotTraining") else "training"
    name = f"{machine} for {use} job usage"
    try:
        value = _quota_called(aws, name)
    except CloudtrainError as error:
        raise Unknown(f"{name}: {error.message}") from None
    if value is None:
        raise Unknown(f"Service Quotas in {aws.region} has no {name}")
    how = f"ask for more under Service Quotas, Amazon SageMaker, {name}"
    enough = value >= wanted
    return Check(
        "quota", "ok" if enough else "problem", f"{name}: {value:g}, the job takes {wanted}", "" if enough else how
    )


def _quota_called(aws: Aws, name: str) -> float | None:
    client, tokens, token = aws.client("service-quotas"), Tokens("list quotas"), ""
    while True:
        with asking("list quotas", aws.region):
            page = client.list_service_quotas(
                ServiceCode="sagemaker", MaxResults=100, **({"NextToken": token} if token else {})
            )
        for quota in entries(page, "Quotas"):
            if text(quota, "QuotaName") == name:
                return float(quota["Value"])
        token = tokens.next(text(page, "NextToken"))
        if not token:
            return None
