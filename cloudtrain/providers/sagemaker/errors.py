"""What botocore raises, as cloudtrain's errors: who said no or did not answer, and what to do next."""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cloudtrain.errors import CloudtrainError, MissingError, RefusedError, UnreachableError
from cloudtrain.providers.sagemaker.refusals import LOG_IN, refusal
from cloudtrain.providers.sagemaker.said import said


class NoSense(UnreachableError):
    """An answer that is none: half of one, or the page of a proxy."""


_TRIES = 4
_WAIT_SECONDS = 0.5
_LATER = "try again in a few minutes"
_ON_THE_WAY = "check the network, its proxy (HTTPS_PROXY), sagemaker.region and AWS_ENDPOINT_URL"
_REGION = "set sagemaker.region in cloudtrain.toml"
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


def called(operation: Callable[..., Any], what: str, region: str, field: str = "", **arguments: Any) -> Any:
    """The answer to a call that may be made any number of times. ``field``: one that every answer has.

    botocore does not see that an answer was cut off (read in botocore 1.44.8: it lets urllib3 pass over the length),
    and takes half of a JSON document for one without fields. So such calls are made again here.
    """
    left = _TRIES
    while True:
        left -= 1
        try:
            with asking(what, region):
                answer = operation(**arguments)
            if field:
                expect(answer, field, what, region)
            return answer
        except NoSense:
            if not left:
                raise
        time.sleep(random.uniform(0, _WAIT_SECONDS) * (_TRIES - left))


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
    except RetriesExceededError as error:
        raise UnreachableError(f"cannot {what} in {region}: {said(str(error))}", hint=_LATER) from error
    except ResponseParserError as error:
        raise _no_sense(what, region, said(str(error))) from error
    except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        if not _is_of_parser(error):
            raise
        raise _no_sense(what, region, said(str(error))) from error


def expect(answer: Any, field: str, what: str, region: str) -> None:
    """Raises NoSense for an answer without the field that all have."""
    if not isinstance(answer, dict) or field not in answer:
        raise _no_sense(what, region, f"it has no {field}")


def code_of(error: Any) -> str:
    """The service's name for an error, a botocore ClientError."""
    return str(error.response.get("Error", {}).get("Code", ""))


def _is_of_parser(error: Exception) -> bool:
    """Whether botocore has stumbled over an answer: JSON that is no object, bytes that are no text, a time that no
    calendar has."""
    names = [str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(error.__traceback__)]
    return "botocore.parsers" in names or names[-1] == "botocore.endpoint"  # which adds to what was parsed


def _no_sense(what: str, region: str, why: str) -> NoSense:
    return NoSense(f"cannot {what} in {region}: the answer makes no sense: {why}", hint=_ON_THE_WAY)


def _answered(response: Any, what: str, region: str) -> CloudtrainError:
    """The service has said something."""
    error = response.get("Error", {})
    code, words = said(str(error.get("Code", ""))), said(str(error.get("Message", "")))
    text = f"cannot {what} in {region}: {code}: {words}" if words else f"cannot {what} in {region}: {code}"
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in _THROTTLED or status >= 500 or status == 429:
        return UnreachableError(text, hint=_LATER)
    return refusal(code, words, text)


def _unanswered(error: Exception, what: str, region: str) -> CloudtrainError:
    """The request was not sent, or nothing came back."""
    from botocore import exceptions as botocore

    words = said(str(error))
    if isinstance(error, botocore.ParamValidationError):
        return RefusedError(f"cannot {what}: {words}", hint="`cloudtrain render` shows the request", cause="invalid")
    if isinstance(error, _of_credentials()):
        return MissingError(f"no AWS credentials that can be used: {words}", hint=LOG_IN)
    if isinstance(error, (botocore.NoRegionError, botocore.InvalidRegionError, botocore.UnknownRegionError)):
        return MissingError(f"{region!r} is no AWS region: {words}", hint=_REGION)
    return UnreachableError(f"cannot {what}: no answer from AWS in {region}: {words}", hint=_ON_THE_WAY)


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
