"""Secret Manager, as far as jobs go: secrets are made and given versions by a client, and read by launch.py."""

from __future__ import annotations

import base64
import binascii
import re
import threading
import time
from typing import Any

from cloudtrain.emulator.vertex.errors import ServiceError
from cloudtrain.emulator.vertex.logs import rfc3339
from cloudtrain.providers.reading import text

_ID = re.compile(r"[A-Za-z0-9_-]{1,255}")


class SecretManager:
    """For any thread. Every method raises ServiceError."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: dict[str, list[str]] = {}

    def create(self, project: str, secret: str) -> dict[str, Any]:
        """A secret without a version."""
        if not _ID.fullmatch(secret):
            raise ServiceError("INVALID_ARGUMENT", f"secret_id must be 1 to 255 of A-Z a-z 0-9 _ -, not {secret!r}")
        name = f"projects/{project}/secrets/{secret}"
        with self._lock:
            if name in self._secrets:
                raise ServiceError("ALREADY_EXISTS", f"Secret [{name}] already exists.")
            self._secrets[name] = []
        return {"name": name, "createTime": rfc3339(time.time_ns()), "replication": {"automatic": {}}}

    def add(self, project: str, secret: str, body: Any) -> dict[str, Any]:
        """A new version, with the content in base 64."""
        data = text(body, "payload", "data")
        try:
            base64.b64decode(data, validate=True)
        except binascii.Error as error:
            raise ServiceError("INVALID_ARGUMENT", "payload.data must be base 64") from error
        with self._lock:
            versions = self._versions(f"projects/{project}/secrets/{secret}")
            versions.append(data)
            number = len(versions)
        name = f"projects/{project}/secrets/{secret}/versions/{number}"
        return {"name": name, "createTime": rfc3339(time.time_ns()), "state": "ENABLED"}

    def access(self, project: str, secret: str, version: str) -> dict[str, Any]:
        """The content of a version: a number, or ``latest``."""
        with self._lock:
            versions = list(self._versions(f"projects/{project}/secrets/{secret}"))
        number = len(versions) if version == "latest" else int(version) if version.isdecimal() else 0
        name = f"projects/{project}/secrets/{secret}/versions/{number or version}"
        if not 1 <= number <= len(versions):
            raise ServiceError("NOT_FOUND", f"Secret Version [{name}] not found.")
        return {"name": name, "payload": {"data": versions[number - 1]}}

    def _versions(self, name: str) -> list[str]:
        if name not in self._secrets:
            raise ServiceError("NOT_FOUND", f"Secret [{name}] not found or has no versions.")
        return self._secrets[name]
