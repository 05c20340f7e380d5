"""What Google's clients raise, as one of ours.

The same refusal has many forms: over REST and gRPC it is an error of ``google.api_core``, a lost connection one of
``requests``, credentials that are not taken one of ``google.auth``, and a broken answer can raise anything.
"""

from __future__ import annotations

import json
import re
from types import TracebackType

from cloudtrain.errors import CloudtrainError, MissingError, NotFoundError, RefusedError, UnreachableError
from cloudtrain.providers.port import Cause
from cloudtrain.providers.vertex.calls import CAPACITY, QUOTA, TOO_MANY, UNAUTHENTICATED, is_temporary, status
from cloudtrain.providers.vertex.endpoints import LOG_IN
from cloudtrain.wording import one_line

_FOUND = re.compile(r"\s*\b[0-9]+\.\s*Field:\s*")
_URL = re.compile(r"^(?:GET|POST|PUT|PATCH|DELETE|HEAD) \S+: ")

_INVALID, _FORBIDDEN, _NOT_FOUND = 400, 403, 404
_LONGEST = 2000


class Told:
    """Around calls of a client: what they raise becomes one of ours. Errors of this machine's disk pass."""

    def __init__(self, what: str) -> None:
        """``what``: the service, as a message names it."""
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if isinstance(error, Exception) and not isinstance(error, CloudtrainError) and not _is_local(error):
            raise told(error, self._what) from error


def told(error: Exception, what: str) -> CloudtrainError:
    """What to tell of an error that is final."""
    from google.api_core.exceptions import GoogleAPICallError, RetryError
    from google.auth.exceptions import GoogleAuthError, TransportError

    if isinstance(error, RetryError) and isinstance(error.cause, Exception):
        error = error.cause
    text = message_of(error)
    if isinstance(error, GoogleAuthError) and not isinstance(error, TransportError):
        return MissingError(f"{what} does not take these credentials: {text}", hint=LOG_IN)
    code = status(error)
    if isinstance(error, GoogleAPICallError) and not is_temporary(error):
        return _refused(code, text, what)
    if code == TOO_MANY:
        return UnreachableError(f"{what} still wants fewer calls after many tries: {text}")
    return UnreachableError(f"no answer from {what}: {text}")


def message_of(error: Exception) -> str:
    """The service's own words, on one line for each problem, without control characters."""
    text = str(getattr(error, "message", None) or error) or type(error).__name__
    text = _URL.sub("", text)
    if text.startswith("{"):
        text = _in_body(text) or text
    first, *found = _FOUND.split(text)
    lines = [clean(part.replace("; Message:", ":")) for part in (found or [first])]
    return "\n  ".join(["", *lines] if found else lines)[:_LONGEST]


def clean(text: str) -> str:
    """As a message shows it, on one line."""
    return one_line(text, _LONGEST)


def _in_body(text: str) -> str:
    """The message of the JSON error that the text begins with: Cloud Storage's client puts the whole answer there."""
    try:
        body, _ = json.JSONDecoder().raw_decode(text)
        return str(body["error"]["message"])
    except (ValueError, LookupError, TypeError):
        return ""


def _is_local(error: Exception) -> bool:
    """An error of the disk. Those of the network are OSErrors, too."""
    from google.auth.exceptions import GoogleAuthError
    from requests.exceptions import RequestException

    of_the_network = (RequestException, GoogleAuthError, ConnectionError, TimeoutError)
    return isinstance(error, OSError) and not isinstance(error, of_the_network)


def _refused(code: int, text: str, what: str) -> CloudtrainError:
    if code == UNAUTHENTICATED:
        return MissingError(f"{what} does not take these credentials: {text}", hint=LOG_IN)
    cause, hint = _why(code, text)
    kind = NotFoundError if code == _NOT_FOUND else RefusedError
    return kind(f"{what} refuses: {text}", hint=hint, cause=cause)


def _why(code: int, text: str) -> tuple[Cause, str | None]:
    """Cause and what to do next."""
    if QUOTA.search(text):
        return "quota", "ask for more quota in the console (IAM, Quotas), or take another machine or region"
    if CAPACITY.search(text):
        return "capacity", "try again later, or take another region or accelerator"
    if code == _FORBIDDEN:
        return "permission", _permission_hint(text)
    if code == _INVALID:
        return "invalid", "`cloudtrain render JOB --provider vertex` shows the request"
    return "", None


def _permission_hint(text: str) -> str:
    if "has not been used" in text or "SERVICE_DISABLED" in text:
        return "switch the API on: gcloud services enable aiplatform.googleapis.com logging.googleapis.com"
    if "actAs" in text:
        return "you need the role Service Account User on the account of vertex.service_account"
    return "you need the roles Vertex AI User, Logs Viewer, and Storage Object Admin on the bucket"
