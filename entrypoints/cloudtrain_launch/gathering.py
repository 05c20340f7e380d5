"""From a node's first moment to the word to go: who is here, who is prepared, and who is waited for."""

from __future__ import annotations

import math
import socket
import time
from typing import Any

from cloudtrain_launch.cluster import Cluster
from cloudtrain_launch.members import Member, Members, reserve_port
from cloudtrain_launch.output import ShowLine

_WAITING_SECONDS = 60.0
"""Between two lines that say whom the nodes of a cloud are waiting for."""
_MOST_NAMED = 8
_AFTER_ALL_ARE_HERE_SECONDS = 10.0
"""For the word to go to come, where nodes have nothing to prepare."""


class Gathering:
    """Node 0 decides when all are here and ready; the others know only whether they have reached it."""

    def __init__(self, cluster: Cluster, members: Members, start_timeout: float, say: ShowLine) -> None:
        self.ready: set[int] = set()
        """Nodes that are prepared."""
        self._cluster = cluster
        self._members = members
        self._limit = f"within {start_timeout:g} s"
        self._say = say
        self._store_port: socket.socket | None = None
        self._next_word = time.monotonic() + _WAITING_SECONDS if cluster.is_cloud else math.inf

    @property
    def is_complete(self) -> bool:
        """For node 0 to ask: everyone is here and ready."""
        return not self._members.missing() and len(self.ready) == self._cluster.nodes

    @property
    def reserve(self) -> float:
        """Seconds that may pass beyond the start's timeout. A node that is connected may go on preparing itself for as
        long as it takes; who waits for it cannot know."""
        if self._members.missing():
            return 0.0
        return math.inf if self._cluster.is_cloud else _AFTER_ALL_ARE_HERE_SECONDS

    def meeting_place(self) -> dict[str, Any]:
        """Node 0: where torch's store is going to be (the port is ours from now on), and the addresses of all nodes."""
        self._store_port = reserve_port()
        addresses = self._members.addresses()
        # Alone in a cloud, a node's own name may not even lead to itself.
        by_address = self._cluster.store_by_address or (self._cluster.is_cloud and self._cluster.nodes == 1)
        host = addresses[0] if by_address else self._cluster.head
        return {"host": host, "port": self._store_port.getsockname()[1], "hosts": addresses}

    def say_who_is_awaited(self) -> None:
        """A line a minute, so that a log without progress says why."""
        if time.monotonic() < self._next_word:
            return
        self._next_word = time.monotonic() + _WAITING_SECONDS
        missing = self._members.missing()
        preparing = sorted(set(range(self._cluster.nodes)) - self.ready - set(missing))
        for nodes, what in ((missing, "to connect"), (preparing, "to be prepared")):
            if nodes:
                self._say(f"waiting for {self._named(nodes)} {what}")

    def who_is_missing(self) -> str:
        """The reason why the workers are not going to start."""
        if isinstance(self._members, Member):
            node = self._cluster.node
            return f"node {node} did not reach node 0 {self._limit}; last error: {self._members.last_error}"
        return f"{self._named(self._members.missing())} did not connect to node 0 {self._limit}"

    def _named(self, nodes: list[int]) -> str:
        names = ", ".join(f"node {node} ({self._cluster.hosts[node]})" for node in nodes[:_MOST_NAMED])
        return f"{names} and {len(nodes) - _MOST_NAMED} more" if len(nodes) > _MOST_NAMED else names
