"""The first words of a cloud node: what it is told of its place and its network. Never a secret."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from cloudtrain_launch import environ, secret_stores
from cloudtrain_launch.cluster import Cluster

_NETWORK = re.compile(r"(NCCL|GLOO|TP|FI|UCX|EFA|OFI|RDMAV|IB)_\w+")
_MOST_HOSTS = 8
_GIB = 1 << 30


def lines(cluster: Cluster, env: Mapping[str, str], workers: Mapping[str, str]) -> Iterator[str]:
    """``env`` is the launcher's environment, ``workers`` the one its workers are to have."""
    hosts = ", ".join(cluster.hosts[:_MOST_HOSTS])
    more = f" and {cluster.nodes - _MOST_HOSTS} more" if cluster.nodes > _MOST_HOSTS else ""
    yield (
        f"{cluster.provider}: node {cluster.node} of {cluster.nodes} ({cluster.hosts[cluster.node]}), "
        f"hosts {hosts}{more}, node 0 at {cluster.head}:{cluster.port}, "
        f"interface {cluster.interface or 'the one that leads to the others'}, read from {cluster.read_from}"
    )
    secret = {*secret_stores.references(env), *environ.secrets(env)}
    shown = sorted(name for name in workers if _NETWORK.fullmatch(name) and name not in secret)
    yield "network: " + (" ".join(f"{name}={workers[name]}" for name in shown) or "as it is")
    yield from _shared_memory("/dev/shm")


def _shared_memory(folder: str) -> Iterator[str]:
    """Too little of it ends a training with a bus error, hours later and without a reason."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return
    size = status.f_blocks * status.f_frsize
    if size < _GIB:
        yield (
            f"{folder} has {size >> 20} MiB, which DataLoader workers and NCCL share; if a rank dies of SIGBUS: "
            "resources.shm_gib where the provider takes it, else fewer DataLoader workers (num_workers=0), "
            "torch.multiprocessing.set_sharing_strategy('file_system'), NCCL_SHM_DISABLE=1"
        )
