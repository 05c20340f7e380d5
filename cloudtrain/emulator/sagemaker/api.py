"""The service's HTTP surface: AWS's JSON protocol, version 1.1, one call for each POST."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from werkzeug.wrappers import Request, Response

from cloudtrain.emulator.sagemaker.errors import ApiError

if TYPE_CHECKING:
    from cloudtrain.emulator.sagemaker.verbs import Verbs

TARGET = "HTTP_X_AMZ_TARGET"
SERVICE = "SageMaker."
"""How the calls that are answered here are named in that header."""
_TYPE = "application/x-amz-json-1.1"
_SCOPE = re.compile(r"Credential=[^/,\s]+/[0-9]{8}/(?P<region>[a-z0-9-]+)/(?P<service>[a-z0-9-]+)/aws4_request")


class Api:
    """A WSGI application for SageMaker's calls."""

    def __init__(self, verbs: Verbs) -> None:
        self._verbs = verbs

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        try:
            status, body = 200, json.dumps(self._answer(Request(environ))).encode()
            headers = {"Content-Type": _TYPE}
        except ApiError as error:
            status = error.status
            body, headers = as_json(error.code, error.message)
        answer: Iterable[bytes] = Response(body, status, headers)(environ, start_response)
        return answer

    def _answer(self, request: Request) -> Mapping[str, Any]:
        scope = _SCOPE.search(request.headers.get("Authorization", ""))
        if scope is None or scope["service"] != "sagemaker":
            raise ApiError("MissingAuthenticationTokenException", "Missing Authentication Token", 403)
        operation = request.headers["X-Amz-Target"].removeprefix(SERVICE)
        return self._verbs.answer(operation, _asked(request.get_data()), scope["region"])


def as_json(code: str, message: str) -> tuple[bytes, dict[str, str]]:
    """Body and headers of an error."""
    body = json.dumps({"__type": code, "message": message}).encode()
    return body, {"Content-Type": _TYPE, "x-amzn-RequestId": str(uuid.uuid4())}


def _asked(body: bytes) -> dict[str, Any]:
    try:
        asked = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        asked = None
    if not isinstance(asked, dict):
        raise ApiError("SerializationException", "The request's body is no JSON object.")
    return asked
