"""What the services say when they say no: by their codes, and where one code stands for many things by their words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from cloudtrain.errors import NotFoundError, RefusedError

if TYPE_CHECKING:
    from cloudtrain.providers.port import Cause


class NotThere(NotFoundError):
    """There is no such job, group of logs, or object."""


class NameTaken(RefusedError):
    """A job of this name is there."""


class AlreadyThere(RefusedError):
    """An object of this name is there, and was not to be replaced."""


class CutIn(RefusedError):
    """Another upload of the same object came between."""


class BadParameter(RefusedError):
    """CloudWatch Logs does not take a parameter: a token that is too old, for one."""


LOG_IN = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or log in with `aws sso login` or `aws configure`"
)
_EXPIRED = "get new credentials (`aws sso login`, or a new AWS_SESSION_TOKEN) and ask again; a job that runs goes on"
_RIGHTS = "ask for the right that is named, or use other credentials: AWS_PROFILE, AWS_ACCESS_KEY_ID"
_CLOCK = "set this machine's clock: AWS takes requests that are at most a few minutes old"
_QUOTA = (
    "ask for more under Service Quotas, Amazon SageMaker, or take fewer or other machines: resources.nodes, "
    "resources.instance"
)
_CAPACITY = "try again later, or take another type or region: resources.instance, sagemaker.region"
_BUCKET = "make the bucket, in the job's region, or name another one: sagemaker.bucket"
_OTHER_REGION = "a bucket must be in the region of the job: sagemaker.bucket, sagemaker.region"
_ELSEWHERE = "it may have been deleted, or be in another region or account: sagemaker.region, AWS_PROFILE"
_REQUEST = "`cloudtrain render --provider sagemaker` shows the request"

_REFUSALS: tuple[tuple[type[RefusedError], Cause, str, str], ...] = (
    (RefusedError, "permission", "ExpiredToken ExpiredTokenException TokenRefreshRequired", _EXPIRED),
    (RefusedError, "permission", "RequestTimeTooSkewed RequestExpired", _CLOCK),
    (
        RefusedError,
        "permission",
        "InvalidClientTokenId UnrecognizedClientException InvalidAccessKeyId SignatureDoesNotMatch InvalidToken "
        "InvalidSignatureException IncompleteSignature MissingAuthenticationToken MissingAuthenticationTokenException "
        "AuthFailure",
        LOG_IN,
    ),
    (
        RefusedError,
        "permission",
        "AccessDenied AccessDeniedException UnauthorizedOperation NotAuthorized Forbidden 403 OptInRequired "
        "AllAccessDisabled AccountProblem KMS.AccessDeniedException",
        _RIGHTS,
    ),
    (RefusedError, "quota", "ResourceLimitExceeded ServiceQuotaExceededException", _QUOTA),
    (RefusedError, "capacity", "CapacityError InsufficientCapacity InsufficientCapacityException", _CAPACITY),
    (RefusedError, "data", "NoSuchBucket", _BUCKET),
    (
        RefusedError,
        "data",
        "PermanentRedirect IllegalLocationConstraintException AuthorizationHeaderMalformed",
        _OTHER_REGION,
    ),
    (NameTaken, "invalid", "ResourceInUse ResourceInUseException", "change the job's name"),
    (NotThere, "invalid", "ResourceNotFound ResourceNotFoundException NoSuchKey NotFound 404", _ELSEWHERE),
    (AlreadyThere, "data", "PreconditionFailed 412", "run the same command again"),
    (CutIn, "data", "ConditionalRequestConflict NoSuchUpload InvalidPart", "run the same command again"),
    (BadParameter, "invalid", "InvalidParameterException", _REQUEST),
)
_BY_CODE: Mapping[str, tuple[type[RefusedError], Cause, str]] = {
    code: (kind, cause, hint) for kind, cause, codes, hint in _REFUSALS for code in codes.split()
}

_BY_WORDS: tuple[tuple[str, type[RefusedError], Cause, str], ...] = (
    (
        r"no s3 objects found",
        RefusedError,
        "data",
        "check data.*.uri: that files lie below it, in the job's region, and that sagemaker.role may list them",
    ),
    # Of a job that is not there it says so, or ResourceNotFound; its own SDK takes both for the same.
    (r"requested resource not found|could not find training job", NotThere, "invalid", _ELSEWHERE),
    (
        r"\b(image|ecr)\b",
        RefusedError,
        "image",
        "check environment.image: that it is there, and that the role may read it",
    ),
    (
        r"\brole\b|assume",
        RefusedError,
        "permission",
        "check sagemaker.role: that it is there, and that SageMaker may assume it",
    ),
    (r"\bs3\b|bucket", RefusedError, "data", _OTHER_REGION),
)
"""What a ValidationException says, which stands for most that can be wrong."""


def refusal(code: str, words: str, text: str) -> RefusedError:
    """The error for what a service has said. ``text``: what was asked, and the service's answer."""
    kind, cause, hint = _BY_CODE.get(code) or _by_words(words if code == "ValidationException" else "")
    return kind(text, hint=hint, cause=cause)


def _by_words(words: str) -> tuple[type[RefusedError], Cause, str]:
    found = ((kind, cause, hint) for pattern, kind, cause, hint in _BY_WORDS if re.search(pattern, words, re.I))
    return next(found, (RefusedError, "invalid", _REQUEST))
