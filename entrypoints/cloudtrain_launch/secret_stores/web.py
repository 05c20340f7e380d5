"""JSON over HTTP by the standard library: bounded, retried where that may help, with errors that show no secret."""

from __future__ import annotations

import http.client
import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from cloudtrain_launch.errors import LaunchError

_ATTEMPTS = 6
_TIMEOUT_SECONDS = 10.0
FIRST_PAUSE_SECONDS = 0.25
"""Before the second try; doubled every time."""
_LONGEST_PAUSE_SECONDS = 20.0
_MAX_BYTES = 1 << 20
_PASSING = (408, 410, 429)
"""Beside 5xx: worth another try. 410 is what Azure's metadata service says while it is updated."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """urllib would take the token along to wherever it is sent."""

    def redirect_request(self, *_: Any) -> None:
        return None


def get_json(url: str, headers: Mapping[str, str], what: str, *, by_proxy: bool = True) -> dict[str, Any]:
    """GET an object. ``what`` it is for begins every error; ``by_proxy`` is for services outside the machine."""
    handlers = [_NoRedirects(), *([] if by_proxy else [urllib.request.ProxyHandler({})])]
    opener = urllib.request.build_opener(*handlers)
    request = urllib.request.Request(url, headers=dict(headers))
    for attempt in range(_ATTEMPTS):
        try:
            with opener.open(request, timeout=_TIMEOUT_SECONDS) as response:
                return _object(response.read(_MAX_BYTES), what)
        except urllib.error.HTTPError as error:
            problem, wait = _told(error), error.headers.get("Retry-After")
            error.close()
            if error.code not in _PASSING and error.code < 500:
                break
        except (OSError, http.client.HTTPException) as error:
            problem, wait = f"{_host(url)}: {getattr(error, 'reason', error)}", None
        except ValueError:  # http.client shows the header that it does not take, which holds the token
            raise LaunchError(f"{what}: {_host(url)} cannot be asked with the token that the job was given") from None
        if attempt < _ATTEMPTS - 1:
            time.sleep(_pause(attempt, wait))
    raise LaunchError(f"{what}: {problem}")


def _pause(attempt: int, wanted: str | None) -> float:
    if wanted and wanted.isdecimal():
        return min(float(wanted), _LONGEST_PAUSE_SECONDS)
    # All nodes ask at the same moment; they are not to come back at the same moment.
    longer = FIRST_PAUSE_SECONDS * float(2**attempt)
    return min(longer, _LONGEST_PAUSE_SECONDS) * random.uniform(0.75, 1.25)


def _object(body: bytes, what: str) -> dict[str, Any]:
    try:
        data = json.loads(body)
    except ValueError:  # without its text, which may hold the secret
        raise LaunchError(f"{what}: the answer is not JSON") from None
    if not isinstance(data, dict):
        raise LaunchError(f"{what}: the answer is not a JSON object")
    return data


def _told(error: urllib.error.HTTPError) -> str:
    """The status, and the service's own words where it sends any: ``{"error": {"message": ...}}`` on both clouds."""
    try:
        said = json.loads(error.read(_MAX_BYTES))["error"]
        message = said["message"] if isinstance(said, dict) else str(said)
    except Exception:  # noqa: BLE001 - the status says enough
        message = ""
    return f"{_host(error.url or '')}: {error.code} {error.reason}" + (f": {message[:300]}" if message else "")


def _host(url: str) -> str:
    return urllib.request.Request(url).host if url else "the service"
