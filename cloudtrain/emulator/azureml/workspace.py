"""The one workspace there is: its names, its datastores and its clusters, as ARM shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from cloudtrain.emulator.azureml.blobs import Blobs, Place
from cloudtrain.emulator.azureml.errors import ServiceError
from cloudtrain.emulator.azureml.vault import Vault

SUBSCRIPTION = "00000000-0000-0000-0000-0000000000aa"
RESOURCE_GROUP = "emulated"
WORKSPACE = "emulated"
LOCATION = "westeurope"
PROVIDER = "Microsoft.MachineLearningServices"

ARTIFACT_STORE = "workspaceartifactstore"
DEFAULT_STORE = "workspaceblobstore"
_ID = str(uuid5(NAMESPACE_URL, "cloudtrain/azureml/workspace"))
_URI = (
    r"azureml://(?:subscriptions/[^/]+/resource[gG]roups/[^/]+/(?:providers/[^/]+/)?workspaces/[^/]+/)?"
    r"datastores/(?P<store>[^/]+)/(?:paths/)?(?P<path>.*)"
)
_BLOB_URL = r"(?:wasbs?://(?P<container>[^@/]+)@(?P<account>[^./]+)\.[^/]+/|https?://(?P<host>[^./]+)\.blob\.[^/]+/(?P<into>[^/]+)/)(?P<path>.*)"


class Cluster(NamedTuple):
    """A compute that a job may name."""

    vm_size: str
    most_nodes: int
    low_priority: bool


CLUSTERS: Mapping[str, Cluster] = {
    "cpu-cluster": Cluster("Standard_D4s_v5", 4, low_priority=False),
    "gpu-cluster": Cluster("Standard_NC24ads_A100_v4", 4, low_priority=False),
    "spot-cluster": Cluster("Standard_D4s_v5", 4, low_priority=True),
}


class Workspace:
    """Names and places. The datastores' containers are in ``blobs``."""

    def __init__(self, blobs: Blobs, vault: Vault, url: str) -> None:
        """``url``: where the service answers."""
        self.blobs = blobs
        self.vault = vault
        self.url = url
        self._stores = {DEFAULT_STORE: f"azureml-blobstore-{_ID}", ARTIFACT_STORE: "azureml"}
        for container in self._stores.values():
            blobs.make(container)

    @property
    def arm_id(self) -> str:
        """The workspace's own."""
        return (
            f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{RESOURCE_GROUP}/providers/{PROVIDER}/workspaces/{WORKSPACE}"
        )

    def below(self, *steps: str) -> str:
        """The ARM id of something in the workspace."""
        return "/".join((self.arm_id, *steps))

    def owns(self, subscription: str, group: str, name: str) -> bool:
        """Whether these name it; ARM does not heed case."""
        asked = (subscription.lower(), group.lower(), name.lower())
        return asked == (SUBSCRIPTION, RESOURCE_GROUP, WORKSPACE)

    def place(self, uri: str) -> Place | None:
        """Where a URI of a job leads in the storage account; None for a place elsewhere. Raises LookupError for a
        datastore that does not exist."""
        if found := re.fullmatch(_URI, uri):
            store = found["store"]
            if store not in self._stores:
                raise LookupError(f"Could not find datastore {store} in workspace {WORKSPACE}")
            return Place(self._stores[store], found["path"].strip("/"))
        found = re.fullmatch(_BLOB_URL, uri)
        if found and (found["account"] or found["host"]) == self.blobs.account:
            return Place(found["container"] or found["into"], found["path"].strip("/"))
        return None

    def artifacts(self, job: str) -> Place:
        """Where a job's logs and its ./outputs are: seen in log URLs that users posted."""
        return Place(self._stores[ARTIFACT_STORE], f"ExperimentRun/dcid.{job}")

    def document(self) -> dict[str, Any]:
        """The workspace."""
        return {
            "id": self.arm_id,
            "name": WORKSPACE,
            "type": f"{PROVIDER}/workspaces",
            "location": LOCATION,
            "tags": {},
            "identity": {"type": "SystemAssigned"},
            "properties": {
                "friendlyName": WORKSPACE,
                "workspaceId": _ID,
                "discoveryUrl": f"{self.url}/discovery",
                "mlFlowTrackingUri": f"azureml://127.0.0.1/mlflow/v1.0{self.arm_id}",
                "storageAccount": f"{self._storage_id()}",
                "provisioningState": "Succeeded",
            },
        }

    def discovery(self) -> dict[str, str]:
        """Where the service's parts answer."""
        return dict.fromkeys(("api", "catalog", "experimentation", "history", "rundata", "studio"), self.url)

    def datastores(self) -> list[dict[str, Any]]:
        """All of them, the default one first."""
        return [self.datastore(name) for name in self._stores]

    def datastore(self, name: str) -> dict[str, Any]:
        """One of them. Raises ServiceError."""
        return {
            "id": self.below("datastores", self._known(name)),
            "name": name,
            "type": f"{PROVIDER}/workspaces/datastores",
            "properties": {
                "datastoreType": "AzureBlob",
                "accountName": self.blobs.account,
                "containerName": self._stores[name],
                "endpoint": "core.windows.net",
                "protocol": "https",
                "isDefault": name == DEFAULT_STORE,
                "serviceDataAccessAuthIdentity": "None",
                "credentials": {"credentialsType": "AccountKey"},
                "tags": {},
                "properties": {},
            },
        }

    def register(self, name: str, body: Any) -> dict[str, Any]:
        """A datastore of a user's: a container of the one account, made if need be. Raises ServiceError."""
        properties = body.get("properties") if isinstance(body, Mapping) else None
        given = properties if isinstance(properties, Mapping) else {}
        container = given.get("containerName")
        if given.get("datastoreType") != "AzureBlob" or not isinstance(container, str):
            raise ServiceError(400, "The emulator has datastores of type AzureBlob only", target="datastoreType")
        if given.get("accountName") != self.blobs.account:
            text = f"The emulator has one storage account, {self.blobs.account}, and not {given.get('accountName')}"
            raise ServiceError(400, text, target="accountName")
        self.blobs.make(container)
        self._stores[name] = container
        return self.datastore(name)

    def secrets(self, name: str) -> dict[str, str]:
        """What opens a datastore: the account's key, with which the vendor's client does all; a SAS breaks parts."""
        self._known(name)
        return {"secretsType": "AccountKey", "key": self.blobs.key}

    def compute(self, name: str) -> dict[str, Any]:
        """A cluster. Raises ServiceError."""
        if name not in CLUSTERS:
            raise ServiceError(404, f"Compute {name} was not found in workspace {WORKSPACE}", target="computeId")
        cluster = CLUSTERS[name]
        scale = {"minNodeCount": 0, "maxNodeCount": cluster.most_nodes, "nodeIdleTimeBeforeScaleDown": "PT2M"}
        return {
            "id": self.below("computes", name),
            "name": name,
            "type": f"{PROVIDER}/workspaces/computes",
            "location": LOCATION,
            "properties": {
                "computeType": "AmlCompute",
                "computeLocation": LOCATION,
                "provisioningState": "Succeeded",
                "properties": {
                    "vmSize": cluster.vm_size,
                    "vmPriority": "LowPriority" if cluster.low_priority else "Dedicated",
                    "scaleSettings": scale,
                    "allocationState": "Steady",
                },
            },
        }

    def _known(self, name: str) -> str:
        if name not in self._stores:
            raise ServiceError(404, f"Could not find datastore {name} in workspace {WORKSPACE}", code="UserError")
        return name

    def _storage_id(self) -> str:
        group = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{RESOURCE_GROUP}"
        return f"{group}/providers/Microsoft.Storage/storageAccounts/{self.blobs.account}"
