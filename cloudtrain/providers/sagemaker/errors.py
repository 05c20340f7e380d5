"""What botocore raises, as cloudtrain's errors: who said no or did not answer, and what to do next."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cloudtrain.errors import CloudtrainError, MissingError, RefusedError, UnreachableError
from cloudtrain.providers.sagemaker.said import said

if TYPE_CHECKING:
    from cloudtrain.providers.port import Cause


class NotThere(RefusedError):
    """There is no such job, group of logs, or object."""


class NameTaken(RefusedError):
    """A job of this name is there."""


_LOG_IN = (
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
_REQUEST = "`cloudtrain render --provider sagemaker` shows the request"

_REFUSALS: tuple[tuple[str, Cause, str], ...] = (
    ("ExpiredToken ExpiredTokenException TokenRefreshRequired", "permission", _EXPIRED),
    ("RequestTimeTooSkewed RequestExpired", "permission", _CLOCK),
    (
        "InvalidClientTokenId UnrecognizedClientException InvalidAccessKeyId SignatureDoesNotMatch InvalidToken "
        "InvalidSignatureException IncompleteSignature MissingAuthenticationToken MissingAuthenticationTokenException "
        "AuthFailure",
        "permission",
        _LOG_IN,
    ),
    (
        "AccessDenied AccessDeniedException UnauthorizedOperation NotAuthorized Forbidden 403 OptInRequired "
        "AllAccessDisabled AccountProblem KMS.AccessDeniedException",
        "permission",
        _RIGHTS,
    ),
    ("ResourceLimitExceeded ServiceQuotaExceededException", "quota", _QUOTA),
    ("CapacityError InsufficientCapacity InsufficientCapacityException", "capacity", _CAPACITY),
    ("NoSuchBucket", "data", _BUCKET),
    ("PermanentRedirect IllegalLocationConstraintException AuthorizationHeaderMalformed", "data", _OTHER_REGION),
)
_BY_CODE = {code: (cause, hint) for codes, cause, hint in _REFUSALS for code in codes.split()}
_TAKEN = ("ResourceInUse", "ResourceInUseException")
_NOT_THERE = ("ResourceNotFound", "ResourceNotFoundException", "NoSuchKey", "404", "NotFound")
_ABSENT = r"not found|could not find|does not exist|no such"
"""How a ValidationException words it: the service answers with either, and its own SDK takes both for the same."""
_THROTTLED = (
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "TooManyRequestsException",
    "RequestLimitExceeded",
    "BandwidthLimitExceeded",
    "LimitExceededException",
)
_VALIDATION: tuple[tuple[str, Cause, str], ...] = (
    (
        r"no s3 objects found",
        "data",
        "check data.*.uri: that files lie below it, in the job's region, and that sagemaker.role may list them",
    ),
    (r"\b(image|ecr)\b", "image", "check environment.image: that it is there, and that the role may read it"),
    (r"\brole\b|assume", "permission", "check sagemaker.role: that it is there, and that SageMaker may assume it"),
    (r"\bs3\b|bucket", "data", _OTHER_REGION),
)


@contextmanager
def asking(what: str, region: str) -> Iterator[None]:
    """Around calls of botocore's. ``what`` goes on from "cannot": ``stop the training job x``."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError
    from s3transfer.exceptions import RetriesExceededError

    try:
        yield
    except ClientError as error:
        raise _answered(error.response, what, region) from error
    except BotoCoreError as error:
        raise _unanswered(error, what, region) from error
    except (ResponseParserError, RetriesExceededError) as error:
        raise _no_sense(what, region, said(str(error))) from error
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        if not _is_of_parser(error):
            raise
        raise _no_sense(what, region, f"the answer makes no sense ({said(str(error))})") from error


def _is_of_parser(error: Exception) -> bool:
    """Whether botocore has stumbled over an answer: JSON that is no object, bytes that are no text."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return str(frames[-1].f_globals.get("__name__")) == "botocore.parsers"


def expect(answer: Any, field: str, what: str, region: str) -> None:
    """Raises UnreachableError for an answer without the field that all have: a proxy's page, say."""
    if not isinstance(answer, dict) or field not in answer:
        raise _no_sense(what, region, f"the answer has no {field}; something on the way may have given it")


def code_of(error: Any) -> str:
    """The service's name for an error, a botocore ClientError."""
    return str(error.response.get("Error", {}).get("Code", ""))


def _answered(response: Any, what: str, region: str) -> CloudtrainError:
    """The service has said something."""
    error = response.get("Error", {})
    code, words = said(str(error.get("Code", ""))), said(str(error.get("Message", "")))
    text = f"cannot {what} in {region}: {code}: {words}" if words else f"cannot {what} in {region}: {code}"
    if code in _BY_CODE:
        cause, hint = _BY_CODE[code]
        return RefusedError(text, hint=hint, cause=cause)
    if code in _TAKEN:
        return NameTaken(text, cause="invalid")
    if code in _NOT_THERE or (code == "ValidationException" and re.search(_ABSENT, words, re.IGNORECASE)):
        return NotThere(text, cause="invalid")
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in _THROTTLED or status >= 500 or status == 429:
        return _no_sense(what, region, f"{code}: {words}")
    cause, hint = next(
        ((cause, hint) for pattern, cause, hint in _VALIDATION if re.search(pattern, words, re.IGNORECASE)),
        ("invalid", _REQUEST),
    )
    return RefusedError(text, hint=hint, cause=cause)


def _no_sense(what: str, region: str, words: str) -> UnreachableError:
    """An answer that is none, after all retries."""
    return UnreachableError(f"cannot {what} in {region}: {words}", hint="try again in a few minutes")


def _unanswered(error: Exception, what: str, region: str) -> CloudtrainError:
    """The request was not sent, or nothing came back."""
    from botocore import exceptions as botocore

    words = said(str(error))
    if isinstance(error, botocore.ParamValidationError):
        return RefusedError(f"cannot {what}: {words}", hint=_REQUEST, cause="invalid")
    if isinstance(error, _of_credentials()):
        return MissingError(f"no AWS credentials that can be used: {words}", hint=_LOG_IN)
    if isinstance(error, (botocore.NoRegionError, botocore.InvalidRegionError, botocore.UnknownRegionError)):
        return MissingError(f"{region!r} is no AWS region: {words}", hint="set sagemaker.region in cloudtrain.toml")
    return UnreachableError(
        f"cannot {what}: no answer from AWS in {region}: {words}",
        hint="check the network, its proxy (HTTPS_PROXY), sagemaker.region and AWS_ENDPOINT_URL",
    )


def _of_credentials() -> tuple[type[Exception], ...]:
    from botocore import exceptions as botocore

    return (
        botocore.NoCredentialsError,
        botocore.PartialCredentialsError,
        botocore.CredentialRetrievalError,
        botocore.ProfileNotFound,
        botocore.ConfigParseError,
        botocore.InvalidConfigError,
        botocore.MetadataRetrievalError,
        botocore.NoAuthTokenError,
        botocore.TokenRetrievalError,
        botocore.SSOError,
        botocore.LoginError,
    )
