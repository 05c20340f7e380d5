"""What the service answers when it says no, in its own words as far as they are publicly known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudtrain.providers.base import NativeProblem
    from cloudtrain.spec.problems import Path

_MOST_TOLD = 10
_LONGEST_KEY = 100
LONGEST_REASON = 1024
"""Of FailureReason and of the message of a modelled error, in characters."""


class ApiError(Exception):
    """An answer that is an error: its code and its message."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


def invalid(message: str) -> ApiError:
    """ValidationException, which stands for most of what can be wrong and is not in the service's model."""
    return ApiError("ValidationException", message)


def constraints(problems: Sequence[NativeProblem]) -> ApiError:
    """In the frame that AWS's services have for it; what was violated in the words of our own check."""
    told = "; ".join(
        f"Value at '{_member(problem.path)}' failed to satisfy constraint: {problem.message}"
        for problem in problems[:_MOST_TOLD]
    )
    s = "s" if len(problems) > 1 else ""
    return invalid(f"{len(problems)} validation error{s} detected: {told}")


def no_such_job() -> ApiError:
    """For Describe, Stop and Delete: as people have seen it, not the ResourceNotFound of the model."""
    return invalid("Requested resource not found.")


def taken(arn: str) -> ApiError:
    """A job of this name is there."""
    return ApiError(
        "ResourceInUse",
        "Training job names must be unique within an AWS account and region, and a training job with this name "
        f"already exists ({arn})",
    )


def over_quota(instance: str, wanted: int) -> ApiError:
    """The account may have none of these machines."""
    return ApiError(
        "ResourceLimitExceeded",
        f"The account-level service limit '{instance} for training job usage' is 0 Instances, with current utilization "
        f"of 0 Instances and a request delta of {wanted} Instances. Please use AWS Service Quotas to request an "
        "increase for this quota. If AWS Service Quotas is not available, contact AWS support to request an increase "
        "for this quota.",
    )


def no_objects(uri: str, region: str, role: str, bucket: str) -> ApiError:
    """A channel without a single object, or in a bucket that is not there (seen at create: amazon-sagemaker-examples
    issue 2267)."""
    return invalid(
        f'No S3 objects found under S3 URL "{uri}" given in input data source. Please ensure that the bucket exists in '
        f'the selected region ({region}), that objects exist under that S3 prefix, and that the role "{role}" has '
        f'"s3:ListBucket" permissions on bucket "{bucket}".'
    )


def reason(text: str) -> str:
    """As a FailureReason, which has room for so much."""
    return text[:LONGEST_REASON]


CAPACITY = (
    "CapacityError: Unable to provision requested ML compute capacity. Please retry using a different ML instance type "
    "or after some time."
)
INTERNAL = "InternalServerError: We encountered an internal error. Please try again."
NO_IMAGE = (
    "ClientError: Cannot pull algorithm container. Either the image does not exist or its permissions are incorrect."
)


def algorithm(failure: str, code: int) -> str:
    """The script's or the launcher's own words, if it left any, and the code that a node ended with."""
    tail = f"exit code: {code}"
    if not failure:
        return f"AlgorithmError: {tail}"
    head = f"AlgorithmError: {failure}"
    return f"{head[: LONGEST_REASON - len(tail) - 2]}, {tail}"


def _member(path: Path) -> str:
    """``stoppingCondition.maxRuntimeInSeconds``, ``inputDataConfig.1.member.channelName``."""
    return ".".join(_steps(path)) or "request"


def _steps(path: Path) -> Iterable[str]:
    for step in path:
        if isinstance(step, int):
            yield from (str(step + 1), "member")
        else:
            yield step[:_LONGEST_KEY] if step.isupper() else step[:1].lower() + step[1:_LONGEST_KEY]
