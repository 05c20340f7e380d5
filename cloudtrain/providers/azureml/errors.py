"""What the vendor's packages raise, and what the service refuses, as errors of ours with a next step.

Addresses of stores hold the right to use them (``?sig=...``), so no text of a failed call is shown with its query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from cloudtrain.errors import CloudtrainError, MissingError, RefusedError, UnreachableError
from cloudtrain.providers.reading import at, entries, text
from cloudtrain.wording import one_line

THROTTLED = frozenset({408, 429, 500, 502, 503, 504})
"""Answers after which the same call may be made again; whether it was done is not known but for 429."""
LOGIN = "az login, or set AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET."
_LONGEST = 3000
"""Characters of a message; the service's own limit for a failure."""
_DEEPEST = 8
_CAUSES = (
    ("quota", r"quota"),
    ("capacity", r"capacity|allocation ?failed|sku ?not ?available"),
    ("permission", r"authoriz|forbidden|permission"),
    ("image", r"\bimage\b"),
)


def shown(message: str) -> str:
    """Text of the service's as a message shows it."""
    return one_line(message, _LONGEST)


def words_of(error: Any) -> tuple[str, str]:
    """Codes and message of the service's error, as ARM and the run history nest it: ``error``, ``details``,
    ``innerError``."""
    while isinstance(at(error, "error"), Mapping):
        error = error["error"]
    codes: list[str] = []
    messages: list[str] = []
    for part in (error, *entries(error, "details")):
        codes += _codes_of(part)
        messages += [word for word in [text(part, "message")] if word and word not in messages]
    return shown(" ".join(dict.fromkeys(codes))), shown(" ".join(messages))


def _codes_of(part: Any) -> Iterator[str]:
    """From the general to the special: ``UserError``, ``Immutable``, ``JobPropertyImmutable``."""
    for _ in range(_DEEPEST):
        if word := text(part, "code"):
            yield word
        part = at(part, "innerError")


def refusal(status: int, body: Any, doing: str) -> CloudtrainError:
    """The error for an answer that is no success. ``doing``: what was asked for, such as "create job x"."""
    codes, message = words_of(body)
    said = ": ".join(part for part in (codes, message) if part) or f"HTTP status {status}"
    if status == 401:
        return MissingError(f"Azure takes no credentials of this machine to {doing}: {said}", hint=LOGIN)
    if status in THROTTLED:
        why = "asks to be called less often" if status == 429 else "has a fault"
        return UnreachableError(f"cannot {doing}: Azure ML {why}, after all retries ({said})")
    found = next((cause for cause, pattern in _CAUSES if re.search(pattern, said.lower())), "invalid")
    cause = "permission" if status == 403 else found
    return RefusedError(f"Azure ML refuses to {doing}: {said}", hint=_HINTS.get(cause), cause=cause)


_HINTS = {
    "quota": "Ask for quota of the VM family in the workspace's region, or name another instance or compute.",
    "capacity": "Try again later, or name another instance, region or compute.",
    "permission": "Your account needs the role AzureML Data Scientist, and Storage Blob Data Contributor for files.",
}


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Around calls of the vendor's packages: what they raise becomes an error of ours."""
    from azure.core import exceptions as core

    try:
        yield
    except core.HttpResponseError as error:
        raise of_response(error, doing) from None
    except core.AzureError as error:
        raise UnreachableError(f"cannot {doing}: no answer ({_without_query(error)})", hint=_NETWORK) from None


_NETWORK = "Check the network and proxy settings; the same command may be given again."


def of_response(error: Any, doing: str) -> CloudtrainError:
    """The error for what azure-core raises for an answer, or for credentials that it did not get."""
    if is_login(error):
        first = str(error).strip().splitlines()[0] if str(error).strip() else "no credentials"
        return MissingError(f"no Azure credentials to {doing}: {_without_query(first)}", hint=LOGIN)
    status = error.status_code or 0
    if not 400 <= status <= 599:
        return UnreachableError(f"cannot {doing}: the answer makes no sense ({_without_query(error)})", hint=_NETWORK)
    return refusal(status, _body_of(error), doing)


def is_login(error: Any) -> bool:
    """Whether azure-core, or azure-identity behind it, has got no credentials to ask with."""
    from azure.core.exceptions import ClientAuthenticationError

    return isinstance(error, ClientAuthenticationError) and error.response is None


def _body_of(error: Any) -> Any:
    """ARM answers in JSON, stores in XML, of which azure-core has read code and message."""
    try:
        body = error.response.json()
    except Exception:  # noqa: BLE001 - not JSON, or not read: in many ways
        body = None
    if isinstance(body, Mapping):
        return body
    code = getattr(error, "error_code", None) or getattr(error, "reason", None) or ""
    code = getattr(code, "value", code)
    return {"error": {"code": str(code), "message": _without_query(str(error.message).splitlines()[0])}}


def _without_query(error: object) -> str:
    return shown(re.sub(r"\?[^\s'\")]*", "?...", str(error)))
