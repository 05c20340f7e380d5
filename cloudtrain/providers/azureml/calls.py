"""HTTP calls over azure-core's own pipeline: explicit timeouts, and bounded retries with jitter.

The vendor's package (azure-ai-ml) takes seconds to load and makes objects of answers, leaving out times, errors and
words it does not know. So it is used for what it alone knows, to make a job of a form (see creation.py); everything
that is only read is read here, as JSON, with the paths and API versions that it uses itself.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from typing import Any

from azure.core.pipeline import Pipeline, PipelineResponse
from azure.core.pipeline.policies import BearerTokenCredentialPolicy, RetryPolicy, UserAgentPolicy
from azure.core.pipeline.transport import RequestsTransport
from azure.core.rest import HttpRequest

from cloudtrain.errors import UnreachableError
from cloudtrain.providers.azureml.errors import refusal, translated

CONNECT_SECONDS = 10.0
READ_SECONDS = 60.0
TRIES = 8
_FIRST_SECONDS = 0.4
_LONGEST_SECONDS = 30.0
_METHODS = frozenset({"GET", "HEAD", "PUT", "POST"})
"""Our POSTs may all be made twice: cancel, listSecrets, startPendingUpload."""


def pause(number: int) -> float:
    """Seconds before try ``number`` + 1; twice as long each time, and never the same for two clients."""
    return min(_LONGEST_SECONDS, _FIRST_SECONDS * 2.0 ** (number - 1)) * random.uniform(0.5, 1.5)


class Patience(RetryPolicy[Any, Any]):
    """azure-core's retries with jitter, a bound on what a server may ask for, and one for a token that has expired."""

    def __init__(self, tries: int = TRIES) -> None:
        super().__init__(retry_total=tries, retry_status=tries, retry_connect=min(3, tries), retry_read=min(5, tries))

    def configure_retries(self, options: dict[str, Any]) -> dict[str, Any]:
        """See azure-core."""
        return {**super().configure_retries(options), "methods": _METHODS}

    def get_backoff_time(self, settings: dict[str, Any]) -> float:
        """See azure-core, whose first retry would come at once, from all clients."""
        return pause(max(1, len(settings["history"])))

    def get_retry_after(self, response: PipelineResponse[Any, Any]) -> float | None:
        """See azure-core."""
        wanted = super().get_retry_after(response)
        return None if wanted is None else min(wanted, _LONGEST_SECONDS)

    def is_retry(self, settings: dict[str, Any], response: PipelineResponse[Any, Any]) -> bool:
        """See azure-core. The policy behind this one has dropped the token that was refused."""
        if response.http_response.status_code == 401 and "renewed" not in settings:
            settings["renewed"] = True
            return True
        return bool(super().is_retry(settings, response))


class Caller:
    """Makes calls, with a bearer token if there is a credential. For one thread at a time."""

    def __init__(
        self,
        credential: Any = None,
        scope: str = "",
        patience: Patience | None = None,
        seconds: tuple[float, float] = (CONNECT_SECONDS, READ_SECONDS),
    ) -> None:
        """``seconds``: to connect, and to hear something."""
        token: list[Any] = [BearerTokenCredentialPolicy(credential, scope)] if credential else []
        transport = RequestsTransport(connection_timeout=seconds[0], read_timeout=seconds[1])
        policies: list[Any] = [UserAgentPolicy("cloudtrain"), patience or Patience(), *token]
        self._pipeline: Pipeline[Any, Any] = Pipeline(transport, policies)

    def json(self, method: str, url: str, doing: str, *, body: Any = None, params: Mapping[str, str] = {}) -> Any:
        """The answer, {} for an empty one; None where the service knows no such thing (404).

        Raises as ``errors.refusal``, or UnreachableError.
        """
        with translated(doing):
            request = HttpRequest(method, url, params=dict(params), json=body)
            response = self._pipeline.run(request).http_response
            status, text = response.status_code, response.text("utf-8")
        answer = _read(text)
        if status == 404:
            return None
        if status >= 400:
            raise refusal(status, answer, doing)
        if answer is None:
            raise UnreachableError(f"cannot {doing}: the answer of {_host(url)} is no JSON")
        return answer

    def part(self, url: str, first: int, length: int, doing: str) -> tuple[bytes, int]:
        """Some bytes of a file, from ``first`` on, and the file's size. No bytes where it has none so far, or is not
        there (404); the size is -1 where the server does not say it."""
        with translated(doing):
            # Without compression: a range of a compressed file would be one of what is sent.
            headers = {"Range": f"bytes={first}-{first + length - 1}", "Accept-Encoding": "identity"}
            response = self._pipeline.run(HttpRequest("GET", url, headers=headers)).http_response
            status, content = response.status_code, response.content
        if status == 404:
            return b"", 0
        size = _size(response.headers.get("Content-Range", ""))
        if status == 416:
            return b"", size
        if status >= 400:
            raise refusal(status, {"error": {"message": ""}}, doing)
        if status == 200:  # ranges are not heeded
            return content[first : first + length], len(content)
        return content, size

    def close(self) -> None:
        """Give the connections back."""
        self._pipeline.__exit__()


def _read(text: str) -> Any:
    """None for what is no JSON object."""
    try:
        answer = json.loads(text or "{}")
    except (ValueError, RecursionError):  # nested as no answer is
        return None
    return answer if isinstance(answer, dict) else None


def _size(content_range: str) -> int:
    """``bytes 5-9/10``, ``bytes */10``: the 10."""
    total = content_range.rpartition("/")[2]
    return int(total) if re.fullmatch(r"[0-9]{1,18}", total) else -1


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0]
