"""Refusals as Google's services word them: a canonical code, a message, and JSON's envelope around both."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

HTTP_STATUS: Mapping[str, int] = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "METHOD_NOT_ALLOWED": 405,
    "ALREADY_EXISTS": 409,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
"""Canonical code -> HTTP status, by google.rpc.Code's own description (405 is HTTP's alone)."""

_CODES = {status: code for code, status in [*HTTP_STATUS.items()][::-1]}


class ServiceError(Exception):
    """The service says no."""

    def __init__(self, code: str, message: str) -> None:
        """``code`` is one of ``HTTP_STATUS``."""
        super().__init__(message)
        self.code = code
        self.message = message


def code_of(status: int) -> str:
    """The canonical code that goes with an HTTP status."""
    return _CODES.get(status) or ("INTERNAL" if status >= 500 else "FAILED_PRECONDITION")


def envelope(status: int, code: str, message: str) -> bytes:
    """The body of an error's answer."""
    content: dict[str, Any] = {"error": {"code": status, "message": message, "status": code}}
    return json.dumps(content, indent=2).encode()
