"""What the service says when it refuses: the ARM error envelope."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Status -> code, where whoever raises the error knows the status only.
_CODES: Mapping[int, str] = {
    400: "UserError",
    401: "ExpiredAuthenticationToken",
    403: "AuthorizationFailed",
    404: "ResourceNotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    429: "TooManyRequests",
    500: "InternalServerError",
    503: "ServiceUnavailable",
}


class ServiceError(Exception):
    """A refusal. ``inner``: the codes of the nested innerError, the outermost first."""

    def __init__(self, status: int, message: str, *, code: str = "", target: str = "", inner: tuple[str, ...] = ()):
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code or code_of(status)
        self.target = target
        self.inner = inner

    @property
    def body(self) -> dict[str, Any]:
        """The envelope."""
        return envelope(self.code, self.message, target=self.target, inner=self.inner)


def code_of(status: int) -> str:
    """The code that goes with a status."""
    return _CODES.get(status, "InternalServerError" if status >= 500 else "UserError")


def envelope(code: str, message: str, *, target: str = "", inner: tuple[str, ...] = ()) -> dict[str, Any]:
    """``{error: {code, message, target, details, additionalInfo, innerError}}``: fields seen in the answers that the
    issue trackers of the vendor's packages quote; what the service knows only by type stands in ``additionalInfo``."""
    nested: dict[str, Any] | None = None
    for name in reversed(inner):
        nested = {"code": name, "innerError": nested}
    info = [{"type": "ComponentName", "info": {"value": "managementfrontend"}}]
    if nested:
        info.append({"type": "InnerError", "info": {"value": nested}})
    error = {"code": code, "message": message, "target": target, "details": [], "additionalInfo": info}
    return {"error": {**error, "innerError": nested}}
