"""A key vault, and the tokens with which containers read it: plain HTTP, as launch.py takes it from this machine alone.

There is one, whatever vault a job names: a reference in a job's variables keeps its path and is led here. A secret is
put there by anyone: ``PUT {CLOUDTRAIN_ENDPOINT_VAULT}/secrets/NAME?api-version=7.4`` with ``{"value": ...}``.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Mapping
from typing import Any

from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from cloudtrain.emulator.azureml.errors import ServiceError
from cloudtrain.providers.azureml.form import VAULT_SECRET
from cloudtrain.providers.azureml.reading import cluster, fits
from cloudtrain.providers.nodes import SECRET
from cloudtrain.providers.reading import section, text

_CALLS = Map(
    [
        Rule("/msi/token", endpoint="token", methods=["GET"]),
        Rule("/secrets/<name>", endpoint="put", methods=["PUT"]),
        Rule("/secrets/<name>", endpoint="get", methods=["GET"]),
        Rule("/secrets/<name>/<version>", endpoint="get", methods=["GET"]),
    ]
)


class _Quiet(WSGIRequestHandler):
    def log(self, *_: Any) -> None:
        """Nothing."""


class Vault:
    """Answers at ``url`` until it is closed."""

    def __init__(self) -> None:
        self._secrets: dict[str, dict[str, str]] = {}
        """Name -> version -> value, the newest last."""
        self._token = secrets.token_urlsafe(16)
        self._header = secrets.token_urlsafe(16)
        self._server = make_server("127.0.0.1", 0, Request.application(self._app), True, request_handler=_Quiet)
        self._thread = threading.Thread(target=self._server.serve_forever, name="azureml vault", daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def environment(self, form: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, str]:
        """A container's variables: with its references led here, and with an identity if the job has one. Serverless
        compute has none of its own; one of a cluster may read the vault."""
        given = {name: self._led(value) if name.startswith(SECRET) else value for name, value in env.items()}
        if not section(form, "identity") and not cluster(form):
            return given
        if text(form, "identity", "type") == "user_identity":
            return {**given, "AZUREML_OBO_ENABLED": "true", "OBO_ENDPOINT": f"{self.url}/msi/token"}
        return {**given, "MSI_ENDPOINT": f"{self.url}/msi/token", "MSI_SECRET": self._header}

    def _led(self, reference: str) -> str:
        return re.sub(r"^https://[^/]+", self.url, reference) if fits(VAULT_SECRET, reference) else reference

    def _app(self, request: Request) -> Response:
        try:
            call, names = _CALLS.bind("127.0.0.1", path_info=request.path).match(method=request.method)
            answer, status = self._answer(call, request, **names), 200
        except ServiceError as error:
            answer, status = error.body, error.status
        except HTTPException as error:
            return error.get_response(request.environ)
        return Response(json.dumps(answer), status, mimetype="application/json")

    def _answer(self, call: str, request: Request, name: str = "", version: str = "") -> dict[str, Any]:
        if call == "token":
            return {"access_token": self._token, "token_type": "Bearer", "resource": request.args.get("resource", "")}
        if call == "put":
            value = text(request.get_json(force=True), "value")
            version = secrets.token_hex(16)
            self._secrets[name] = {**self._secrets.get(name, {}), version: value}
        elif request.headers.get("Authorization") != f"Bearer {self._token}":
            raise ServiceError(401, "AKV10000: Request is missing a Bearer or PoP token.", code="Unauthorized")
        kept = self._secrets.get(name, {})
        version = version or next(reversed(kept), "")
        if version not in kept:
            message = f"A secret with (name/id) {name} was not found in this key vault."
            raise ServiceError(404, message, code="SecretNotFound")
        return {"value": kept[version], "id": f"{self.url}/secrets/{name}/{version}", "attributes": {"enabled": True}}
