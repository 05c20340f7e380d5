"""Logs that misbehave as the fault file says: empty pages with more behind them.

What is late, or out of order, is so where lines are written (``job.py``).
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from werkzeug.wrappers import Request, Response

from cloudtrain.emulator.sagemaker.operations import operation_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudtrain.emulator.base import WsgiApp

_MARK = "/again"
"""Behind a token for which an empty page has been given already."""
_BEGINNING = "f/0"


class EmptyPages:
    """CloudWatch Logs in which every page with lines is preceded by an empty one, with a token of its own."""

    def __init__(self, app: WsgiApp) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if operation_of(environ) != "GetLogEvents":
            return self._app(environ, start_response)
        asked = json.loads(Request(environ).get_data())
        token = asked.get("nextToken") or ""
        is_second = token.endswith(_MARK)
        if is_second:
            asked["nextToken"] = None if token == _BEGINNING + _MARK else token.removesuffix(_MARK)
        answer = self._ask(environ, asked)
        if not is_second and _goes_forward(asked) and answer.status_code == 200:
            answer = _emptied(answer, (token or _BEGINNING) + _MARK)
        return answer(environ, start_response)

    def _ask(self, environ: dict[str, Any], asked: dict[str, Any]) -> Response:
        body = json.dumps({name: value for name, value in asked.items() if value is not None}).encode()
        changed = {**environ, "wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
        return Response.from_app(self._app, changed, buffered=True)


def _goes_forward(asked: dict[str, Any]) -> bool:
    return str(asked.get("nextToken") or ("f" if asked.get("startFromHead") else "b")).startswith("f")


def _emptied(answer: Response, token: str) -> Response:
    """The page without its lines, if it has any, and where to go on: to the same page."""
    page = json.loads(answer.get_data())
    if not page.get("events"):
        return answer
    return Response(json.dumps({**page, "events": [], "nextForwardToken": token}), headers=answer.headers)
