"""Which nodes there are, which one this is, and where its folders lie: read from the provider's contract.

One resolver per provider (``contracts/``): a function from the environment and its files to a ``Cluster``.
The provider is named by ``CLOUDTRAIN_PROVIDER``; there is no guessing and no fallback to a single node.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module

from cloudtrain_launch.contracts import reading
from cloudtrain_launch.errors import LaunchError
from cloudtrain_launch.spec import LaunchSpec


@dataclass(frozen=True)
class Cluster:
    """The job's nodes as this node sees them."""

    provider: str
    node: int
    """Rank of this node, 0 .. len(hosts) - 1."""
    hosts: tuple[str, ...]
    """Name or address of every node, in rank order; all nodes have the same list."""
    port: int
    """Where node 0's launcher listens for the others."""
    listen_fd: int | None = None
    """A socket already listening there, inherited from whoever started this node."""
    device: str = "auto"
    """``cpu`` where the ranks are to train on CPU, whatever a framework would choose by itself."""
    token: str = ""
    """What the launchers of one run know and nobody else; node 0 admits no one without it."""
    folders: Mapping[str, str] = field(default_factory=dict)
    """Variable -> path on this node: ``CLOUDTRAIN_DATA_<CHANNEL>``, ``CLOUDTRAIN_OUTPUT_<NAME>``, the fixed ones."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Variable of a data folder that is made on the node -> where its content comes from."""
    deliveries: Mapping[str, str] = field(default_factory=dict)
    """Variable of a folder that is made on the node -> where its content is copied to at the end."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What the workers are given beside our own variables, unless the environment or the job sets it already."""
    interface: str = ""
    """The network interface that leads to the other nodes, where the contract names it."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Name -> address, for names that no DNS knows (simulated nodes)."""
    store_by_address: bool = False
    """Whether node 0's name leads to ``port`` alone, so that anything else there must be reached by its address."""
    hosts_by_address: bool = False
    """Whether ``hosts`` holds made-up names, so that scripts are given the addresses node 0 sees instead."""
    read_from: str = ""
    """What the list of nodes was read from, for messages."""

    @property
    def nodes(self) -> int:
        """How many nodes the job has."""
        return len(self.hosts)

    @property
    def is_cloud(self) -> bool:
        """Whether the node has to be prepared first: code, requirements, secrets and data are not there yet."""
        return self.provider != "local"

    @property
    def head(self) -> str:
        """Where node 0 is reached."""
        return self.address_of(self.hosts[0])

    def address_of(self, host: str) -> str:
        """What to connect to for a name of ``hosts``."""
        return self.addresses.get(host, host)


FIXED_FOLDERS = (
    "CLOUDTRAIN_CHECKPOINT_DIR",
    "CLOUDTRAIN_OUTPUT_DIR",
    "CLOUDTRAIN_MODEL_DIR",
    "CLOUDTRAIN_METRICS_DIR",
)

RESOLVERS = {name: f"cloudtrain_launch.contracts.{name}" for name in ("azureml", "local", "sagemaker", "vertex")}
"""Provider -> the module whose ``resolve(env, spec)`` reads its contract."""
_OTHER = "cloudtrain_launch.contracts.other"
"""For a provider of whom only whoever starts the nodes knows more."""


def resolve(env: Mapping[str, str], spec: LaunchSpec) -> Cluster:
    """The cluster as the environment describes it. Raises LaunchError with what is missing or wrong."""
    provider = env.get("CLOUDTRAIN_PROVIDER", "")
    if not provider or (provider not in RESOLVERS and not env.get("CLOUDTRAIN_HOSTS")):
        raise LaunchError(
            f"CLOUDTRAIN_PROVIDER is {provider!r}; this launcher knows {', '.join(sorted(RESOLVERS))}, and others by "
            "their CLOUDTRAIN_HOSTS, which is not set"
        )
    found: Cluster = import_module(RESOLVERS.get(provider, _OTHER)).resolve(env, spec)
    if spec.nodes and spec.nodes != found.nodes:
        raise LaunchError(f"the job asks for {spec.nodes} nodes, but {found.read_from} names {found.nodes}")
    return _with_harness(found, env)


def _with_harness(cluster: Cluster, env: Mapping[str, str]) -> Cluster:
    """What may stand beside any contract: set by whoever simulates the nodes."""
    return replace(
        cluster,
        port=reading.port(env, "CLOUDTRAIN_PORT") if env.get("CLOUDTRAIN_PORT") else cluster.port,
        listen_fd=reading.number(env, "CLOUDTRAIN_LISTEN_FD") if env.get("CLOUDTRAIN_LISTEN_FD") else None,
        device=env.get("CLOUDTRAIN_NODE_DEVICE", "auto"),
        token=env.get("CLOUDTRAIN_TOKEN", ""),
        addresses=reading.addresses(env, "CLOUDTRAIN_HOSTMAP"),
    )


def named_folders(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that name folders, with what they hold."""
    return {name: value for name, value in env.items() if _is_folder(name)}


def cloud_folders(env: Mapping[str, str]) -> dict[str, str]:
    """The same where a request names them: the fixed ones must be there. Metrics lie below the output unless said."""
    folders = named_folders(env)
    if "CLOUDTRAIN_OUTPUT_DIR" in folders:
        folders.setdefault("CLOUDTRAIN_METRICS_DIR", folders["CLOUDTRAIN_OUTPUT_DIR"].rstrip("/") + "/metrics")
    for name in FIXED_FOLDERS:
        reading.need(folders, name)
    return folders


def _is_folder(name: str) -> bool:
    return name in FIXED_FOLDERS or name.startswith(("CLOUDTRAIN_DATA_", "CLOUDTRAIN_OUTPUT_"))


def make_folders(cluster: Cluster) -> None:
    """Create what the script may write to; what it reads must be there."""
    for name, path in cluster.folders.items():
        if not name.startswith("CLOUDTRAIN_DATA_"):
            try:
                os.makedirs(path, exist_ok=True)
            except OSError as error:
                raise LaunchError(f"cannot make {name}: {error}") from error
