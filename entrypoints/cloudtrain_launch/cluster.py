"""Which nodes there are, which one this is, and where its folders lie: read from the provider's contract.

One resolver per provider: a function from the environment to a ``Cluster``. The provider is named by
``CLOUDTRAIN_PROVIDER``; there is no guessing and no fallback to a single node.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Callable

from cloudtrain_launch.errors import LaunchError


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

    @property
    def nodes(self) -> int:
        """How many nodes the job has."""
        return len(self.hosts)


FIXED_FOLDERS = (
    "CLOUDTRAIN_CHECKPOINT_DIR",
    "CLOUDTRAIN_OUTPUT_DIR",
    "CLOUDTRAIN_MODEL_DIR",
    "CLOUDTRAIN_METRICS_DIR",
)


def resolve(env: Mapping[str, str]) -> Cluster:
    """The cluster as the environment describes it. Raises LaunchError with the variable that is missing or wrong."""
    provider = env.get("CLOUDTRAIN_PROVIDER", "")
    if provider not in RESOLVERS:
        raise LaunchError(f"CLOUDTRAIN_PROVIDER is {provider!r}; this launcher knows {', '.join(sorted(RESOLVERS))}")
    return RESOLVERS[provider](env)


def _local(env: Mapping[str, str]) -> Cluster:
    """Local mode: everything is in CLOUDTRAIN_* variables written by the local provider's contract."""
    hosts = tuple(_need(env, "CLOUDTRAIN_HOSTS").split(","))
    node = _number(env, "CLOUDTRAIN_NODE_RANK")
    if not all(hosts):
        raise LaunchError(f"CLOUDTRAIN_HOSTS has an empty name: {env['CLOUDTRAIN_HOSTS']!r}")
    if not 0 <= node < len(hosts):
        raise LaunchError(f"CLOUDTRAIN_NODE_RANK is {node}, but CLOUDTRAIN_HOSTS names {len(hosts)} nodes")
    port = _number(env, "CLOUDTRAIN_PORT")
    if not 1 <= port <= 65535:
        raise LaunchError(f"CLOUDTRAIN_PORT is {port}, a port is from 1 to 65535")
    return Cluster(
        provider="local",
        node=node,
        hosts=hosts,
        port=port,
        listen_fd=_number(env, "CLOUDTRAIN_LISTEN_FD") if env.get("CLOUDTRAIN_LISTEN_FD") else None,
        device=env.get("CLOUDTRAIN_NODE_DEVICE", "auto"),
        token=env.get("CLOUDTRAIN_TOKEN", ""),
        folders={name: path for name, path in env.items() if _is_folder(name)},
    )


def _is_folder(name: str) -> bool:
    return name in FIXED_FOLDERS or name.startswith(("CLOUDTRAIN_DATA_", "CLOUDTRAIN_OUTPUT_"))


def _need(env: Mapping[str, str], name: str) -> str:
    value = env.get(name)
    if not value:
        raise LaunchError(f"{name} is not set")
    return value


def _number(env: Mapping[str, str], name: str) -> int:
    text = _need(env, name)
    try:
        return int(text)
    except ValueError:
        raise LaunchError(f"{name} is not a whole number: {text!r}") from None


RESOLVERS: dict[str, Callable[[Mapping[str, str]], Cluster]] = {"local": _local}


def make_folders(cluster: Cluster) -> None:
    """Create what the script may write to; what it reads must be there."""
    for name, path in cluster.folders.items():
        if not name.startswith("CLOUDTRAIN_DATA_"):
            try:
                os.makedirs(path, exist_ok=True)
            except OSError as error:
                raise LaunchError(f"cannot make {name}: {error}") from error
