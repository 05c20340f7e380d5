"""Who calls: whoever has logged in to Azure on this machine, or nobody, before the emulator."""

from __future__ import annotations

import base64
import json
import time
from typing import Any, NamedTuple

from cloudtrain.errors import MissingError
from cloudtrain.providers.azureml.endpoints import Endpoints
from cloudtrain.providers.registry import EXTRAS
from cloudtrain.providers.vendor import importing

_HOUR = 3600


def credential_for(endpoints: Endpoints) -> Any:
    """Something with ``get_token``, as azure-core wants it. Nothing is asked of anybody yet. Raises MissingError."""
    if endpoints.emulated:
        return EmulatorToken()
    try:
        with importing():
            from azure.identity import DefaultAzureCredential
    except ImportError as error:
        raise MissingError(f"azure-identity cannot be loaded: {error}", hint=EXTRAS["azureml"]) from error
    return DefaultAzureCredential(authority=endpoints.authority)


class AccessToken(NamedTuple):
    """As azure-core's own, which is not loaded for this."""

    token: str
    expires_on: int


class EmulatorToken:
    """Gives tokens that are well formed and say nothing: a header, the audience that was asked for, no signature."""

    def get_token(self, *scopes: str, **_options: Any) -> AccessToken:
        """The vendor's client reads ``tid`` for links and compares ``aud`` where a job runs as its user."""
        expires = int(time.time()) + _HOUR
        audience = scopes[0].removesuffix("/.default") if scopes else ""
        claims = {"aud": audience, "exp": expires, "tid": "00000000-0000-0000-0000-000000000000"}
        return AccessToken(".".join([_part({"alg": "none", "typ": "JWT"}), _part(claims), "none"]), expires)


def _part(content: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")
