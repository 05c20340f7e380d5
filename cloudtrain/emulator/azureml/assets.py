"""Code snapshots and environments: what jobs refer to by id."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from cloudtrain.catalog.tables import rows
from cloudtrain.emulator.azureml.blobs import Place
from cloudtrain.emulator.azureml.errors import ServiceError
from cloudtrain.emulator.azureml.workspace import PROVIDER, Workspace
from cloudtrain.providers.azureml import form
from cloudtrain.providers.azureml.reading import fits

_CURATED = r"(?:azureml://registries/azureml/environments/|(?:azureml:)?AzureML-)(?P<name>[^/@:]+)(?:/(?:versions|labels)/|[@:]).+"

_ACPT = r"acpt-pytorch-\d+\.\d+-cuda\d+\.\d+"
"""How Microsoft names its images for PyTorch; there are more of them than the catalogue holds."""


class Codes:
    """Snapshots by name and version, and by content."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._kept: dict[tuple[str, str], dict[str, Any]] = {}
        self._lock = threading.Lock()

    def with_hash(self, content: str) -> list[dict[str, Any]]:
        """The snapshot of that content, if there is one: of whatever name."""
        with self._lock:
            found = [document for document in self._kept.values() if _hash(document) == content]
        return found[:1]

    def begin_upload(self, body: Any) -> dict[str, Any]:
        """A new container, and a URL that lets its content be written."""
        kind = body.get("pendingUploadType") if isinstance(body, Mapping) else None
        if kind != "TemporaryBlobReference":
            raise ServiceError(400, f"pendingUploadType must be TemporaryBlobReference, not {kind!r}")
        upload, blobs = str(uuid4()), self._workspace.blobs
        place = Place(upload, "")
        blobs.make(upload)
        return {
            "pendingUploadId": upload,
            "pendingUploadType": kind,
            "blobReferenceForConsumption": {
                "blobUri": f"{blobs.url}/{upload}",
                "storageAccountArmId": self._workspace.document()["properties"]["storageAccount"],
                "credential": {"credentialType": "SAS", "sasUri": blobs.signed(place, "rcwl")},
            },
        }

    def put(self, name: str, version: str, body: Any) -> tuple[int, dict[str, Any]]:
        """Register what was uploaded. A version that is there stays as it is."""
        properties = body.get("properties") if isinstance(body, Mapping) else None
        uri = properties.get("codeUri") if isinstance(properties, Mapping) else None
        if not isinstance(uri, str):
            raise ServiceError(400, "properties.codeUri is missing", target="codeUri")
        place = self._place(uri)
        if not any(True for _ in self._workspace.blobs.names(place)):
            raise ServiceError(400, f"There is nothing at {uri}", target="codeUri", inner=("NotFoundError",))
        with self._lock:
            kept = self._kept.get((name, version))
            if kept and kept["properties"]["codeUri"] != uri:
                raise ServiceError(400, f"Code {name}:{version} exists and cannot be changed", inner=("Immutable",))
            document = {
                "id": self._workspace.below("codes", name, "versions", version),
                "name": version,
                "type": f"{PROVIDER}/workspaces/codes/versions",
                "properties": {"isArchived": False, "isAnonymous": False, **dict(properties or {})},
            }
            self._kept[name, version] = document
        return 200 if kept else 201, document

    def get(self, name: str, version: str) -> dict[str, Any]:
        """One of them. Raises ServiceError."""
        with self._lock:
            if (name, version) not in self._kept:
                raise ServiceError(404, f"Code {name}:{version} was not found", target="codeId")
            return self._kept[name, version]

    def by_id(self, arm_id: str) -> Place:
        """Where a job's code lies. Raises ServiceError."""
        match = re.fullmatch(re.escape(self._workspace.below("codes")) + r"/([^/]+)/versions/([^/]+)", arm_id)
        if not match:
            raise ServiceError(400, f"{arm_id} is no id of a code version of this workspace", target="codeId")
        return self._place(self.get(*match.groups())["properties"]["codeUri"])

    def _place(self, uri: str) -> Place:
        """Raises ServiceError for a place in another account."""
        server, own = urlsplit(uri), urlsplit(self._workspace.blobs.url)
        path = server.path.removeprefix(f"{own.path}/")
        if server.netloc != own.netloc or path == server.path:
            raise ServiceError(400, f"{uri} is not in the workspace's storage account", target="codeUri")
        container, _, folder = path.partition("/")
        return Place(container, folder.strip("/"))


class Environments:
    """Those of the workspace, and the vendor's own."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._kept: dict[tuple[str, str], dict[str, Any]] = {}
        self._lock = threading.Lock()

    def put(self, name: str, version: str, body: Any) -> tuple[int, dict[str, Any]]:
        """Register one. A version that is there can be put again, unchanged."""
        properties = body.get("properties") if isinstance(body, Mapping) else None
        if not isinstance(properties, Mapping) or not (properties.get("image") or properties.get("build")):
            raise ServiceError(400, "An environment needs an image or a build", target="properties.image")
        with self._lock:
            kept = self._kept.get((name, version))
            if kept and any(kept["properties"].get(key) != properties.get(key) for key in ("image", "condaFile")):
                raise ServiceError(400, f"Environment {name}:{version} exists and is immutable", inner=("Immutable",))
            document = {
                "id": self._workspace.below("environments", name, "versions", version),
                "name": version,
                "type": f"{PROVIDER}/workspaces/environments/versions",
                "properties": {"environmentType": "UserCreated", "osType": "Linux", **properties},
            }
            self._kept[name, version] = document
        return 200 if kept else 201, document

    def get(self, name: str, version: str) -> dict[str, Any]:
        """One of them. Raises ServiceError."""
        with self._lock:
            if (name, version) not in self._kept:
                raise ServiceError(404, f"Environment {name}:{version} was not found", target="environmentId")
            return self._kept[name, version]

    def versions(self, name: str) -> list[dict[str, Any]]:
        """All versions of one, the newest first. Raises ServiceError."""
        with self._lock:
            found = [document for (known, _), document in self._kept.items() if known == name]
        if not found:
            raise ServiceError(404, f"Environment {name} was not found", target="environmentId")
        return found[::-1]

    def by_id(self, given: str) -> Mapping[str, Any] | None:
        """The properties of an environment of the workspace; None for one of the vendor's, of which the emulator knows
        the name alone. Raises ServiceError where there is none."""
        match = re.fullmatch(re.escape(self._workspace.below("environments")) + r"/([^/]+)/versions/([^/]+)", given)
        if match:
            found: Mapping[str, Any] = self.get(*match.groups())["properties"]
            return found
        curated = re.fullmatch(_CURATED, given)
        if curated and (curated["name"] in _curated_names() or fits(_ACPT, curated["name"])):
            return None
        if not curated and not fits(form.ENVIRONMENT, given):
            raise ServiceError(400, f"{given} is no id of an environment", target="environmentId")
        raise ServiceError(404, f"Environment {given} was not found", target="environmentId")


def _hash(document: Mapping[str, Any]) -> Any:
    return (document["properties"].get("properties") or {}).get("hash_sha256")


def _curated_names() -> frozenset[str]:
    """Of the images that the vendor curates, as the catalogue has them: their environments have the same names."""
    images = (re.search(r"/curated/([^:]+)", row["image"]) for row in rows("images_azureml"))
    return frozenset(found[1] for found in images if found)
