"""Which failed calls may be sent again, and what a failed call may have done all the same.

Over REST and gRPC alike: an answer is an error of ``google.api_core``, a lost connection over REST one of ``requests``.
"""

from __future__ import annotations

import re
from json import JSONDecodeError
from typing import Any, Literal

QUOTA = re.compile(r"quota metrics exceed|custom_model_training|restricted_image_training", re.IGNORECASE)
CAPACITY = re.compile(r"resources are insufficient|stock-?out", re.IGNORECASE)
_CUT = re.compile(r"socket closed|connection (reset|aborted)|broken pipe|goaway|stream removed|recvmsg", re.IGNORECASE)
_NOT_SENT = re.compile(
    r"failed to connect|connection refused|connect timeout|resolution|no route|unable to connect to proxy",
    re.IGNORECASE,
)

UNAUTHENTICATED, TOO_MANY, _INTERNAL, _UNAVAILABLE = 401, 429, 500, 503
_TEMPORARY = (408, TOO_MANY, _INTERNAL, 502, _UNAVAILABLE, 504)


def retry(seconds: float) -> Any:
    """Google's own Retry for calls that may be repeated: jittered, doubling pauses, no new try after ``seconds``."""
    from google.api_core.retry import Retry

    return Retry(predicate=_Patience(), initial=0.5, maximum=15.0, multiplier=2.0, timeout=seconds)


class _Patience:
    """Says for one call which errors it is worth to wait for."""

    _RENEWALS = 2
    """A token that has run out is renewed by the next call; credentials that are not taken stay so."""

    def __init__(self) -> None:
        self._left = self._RENEWALS

    def __call__(self, error: Exception) -> bool:
        if status(error) == UNAUTHENTICATED:
            self._left -= 1
            return self._left >= 0
        return is_temporary(error)


def status(error: Exception) -> int:
    """The HTTP status that an error stands for; 0 where there was no answer.

    Without credentials a 401 shows as an InvalidOperation: google.auth tries to renew what cannot be renewed (seen with
    AnonymousCredentials of google-auth 2.63).
    """
    from google.auth.exceptions import InvalidOperation

    if isinstance(error, InvalidOperation):
        return UNAUTHENTICATED
    code = getattr(error, "code", None)
    return int(code) if isinstance(code, int) else 0


def is_temporary(error: Exception) -> bool:
    """Whether the same call may well succeed a little later.

    HTTP 408, 429, 500, 502, 503 and 504, lost connections and answers that are cut off; not a quota of machines, which
    has the status of throttling.
    """
    from google.api_core.exceptions import GoogleAPICallError
    from google.auth.exceptions import GoogleAuthError, TransportError
    from google.protobuf.json_format import ParseError
    from requests.exceptions import InvalidHeader, InvalidSchema, InvalidURL, MissingSchema, RequestException

    if isinstance(error, GoogleAPICallError):
        return status(error) in _TEMPORARY and not _is_shortage(error)
    if isinstance(error, GoogleAuthError):
        return isinstance(error, TransportError)
    if isinstance(error, (InvalidHeader, InvalidSchema, InvalidURL, MissingSchema)):
        return False
    return isinstance(
        error, (RequestException, ConnectionError, TimeoutError, ParseError, JSONDecodeError, UnicodeDecodeError)
    )


Effect = Literal["none", "unlikely", "unclear", "refused"]


def effect(error: Exception) -> Effect:
    """What a call that changes something came to, which was sent once and failed so.

    none      it has not been done, and may be sent again
    unlikely  the service has given up on it: to be looked for, and sent again if it is not there
    unclear   it may have been done, or be done yet: never to be sent again
    refused   it has not been done, and would not be
    """
    from google.api_core.exceptions import GoogleAPICallError

    text = str(error)
    code = status(error)
    if code == UNAUTHENTICATED:
        return "none"
    if not isinstance(error, GoogleAPICallError):
        return "none" if _NOT_SENT.search(text) else "unclear"
    if not is_temporary(error):
        return "refused"
    if _CUT.search(text):  # over gRPC, the status 503 of a lost connection is that of an answer
        return "unclear"
    if code in (TOO_MANY, _UNAVAILABLE):
        return "none"
    return "unlikely" if code == _INTERNAL else "unclear"


def _is_shortage(error: Exception) -> bool:
    text = str(error)
    return bool(QUOTA.search(text) or CAPACITY.search(text))
