"""A call as it is answered: what its path, query and body say, and what goes back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from werkzeug.wrappers import Request

from cloudtrain.emulator.azureml.errors import ServiceError


class Asked(NamedTuple):
    """One call."""

    path: str
    names: Mapping[str, str]
    """What the path names: ``name``, ``version``, ``experiment``."""
    query: Mapping[str, str]
    body: Any

    @property
    def name(self) -> str:
        """Of what the call is about."""
        return self.names["name"]

    def number(self, key: str) -> int | None:
        """A whole number of the query; None for none."""
        given = self.query.get(key, "")
        return int(given) if given.isdecimal() and given.isascii() else None

    def again(self, url: str, **changes: str) -> str:
        """The same call with another query: the address of a next page."""
        query = "&".join(f"{quote(key)}={quote(value)}" for key, value in {**self.query, **changes}.items())
        return f"{url}{self.path}?{query}"


class Answer(NamedTuple):
    """A status, and JSON or nothing."""

    status: int
    body: Any = None


Calls = Mapping[str, Callable[[Asked], Answer]]
"""What each operation does."""


def asked(request: Request, names: Mapping[str, str]) -> Asked:
    """The call. Raises ServiceError for a body that is no JSON."""
    try:
        body = json.loads(request.get_data() or b"{}")
    except ValueError:
        raise ServiceError(400, "The request's body is no JSON", code="BadRequest") from None
    return Asked(request.path, names, request.args.to_dict(), body)


def page(found: list[Any], link: str | None = None) -> Answer:
    """Some of a list."""
    return Answer(200, {"value": found, "nextLink": link})
