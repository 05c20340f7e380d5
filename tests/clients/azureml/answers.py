"""What the service may say instead of what it was asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from werkzeug.wrappers import Request, Response

Fault = Callable[[Request], "Response | None"]
"""What to answer instead; None: nothing, the connection ends."""


def error(status: int, code: str, message: str, *inner: str, **headers: str) -> Response:
    """An answer in ARM's envelope."""
    nested: dict[str, Any] | None = None
    for word in reversed(inner):
        nested = {"code": word, "innerError": nested}
    body = {"error": {"code": code, "message": message, "details": [], "innerError": nested}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(json.dumps(body), status, named, content_type="application/json")


def fault(status: int, code: str = "ServiceUnavailable", message: str = "later", **headers: str) -> Fault:
    """An answer that has nothing to do with what was asked."""
    return lambda _: error(status, code, message, **headers)


def lost(_: Request) -> None:
    """No answer: the connection ends."""


def cut(_: Request) -> Response:
    """Half an answer."""
    begun = iter([b'{"id": "/subscr'])
    return Response(begun, 200, {"Content-Length": "4000", "Content-Type": "application/json"})
