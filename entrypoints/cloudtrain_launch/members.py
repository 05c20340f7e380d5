"""The channel between the nodes' launchers.

Torch elastic tells no node that another one failed: its workers go on computing, or wait in a collective until a
timeout of many minutes (seen with torch 2.13). So the launchers keep a connection of their own, a star around node 0:
it shows who is missing at the start, spreads a failure or a preemption in milliseconds, and breaks at once when a
node's launcher dies. A key in torch's store that everyone polls, the obvious alternative, cannot tell a dead node from
a slow one, and needs torch loaded before anybody can be missed.

What node k sends to node 0: ``hello``, then ``ready`` (prepared, the workers may start), ``failure``, ``preempt``,
``joining``, ``done``, ``beat``. Node 0 passes these on to all others, answers ``hello`` with ``welcome`` or
``refused``, and sends ``go`` (all are here and ready; where torch's store is).

Clouds start a container that has ended once more, in place and at once, while others are still on their way out. So
node 0 lets no one in once the job is ending, and a node that was not answered tries again.
"""

from __future__ import annotations

import abc
import contextlib
import hmac
import selectors
import socket
import time
from typing import Any

from cloudtrain_launch import exits
from cloudtrain_launch.channel import Channel, Handler, Message
from cloudtrain_launch.cluster import Cluster
from cloudtrain_launch.errors import LaunchError
from cloudtrain_launch.spec import LaunchSpec

BEAT_SECONDS = 2.0
_CONNECT_SECONDS = 3.0
_LONGEST_PAUSE_SECONDS = 0.5
_FINAL = ("failure", "preempt", "done")
"""What cannot be taken back: told to a node that comes late, too, or it would wait for a job that is over."""


class Members(abc.ABC):
    """What both ends share: sending to everyone, hearing from everyone, who has gone silent.

    ``hear`` is called with every message of another node; messages carry ``node``, the node they are about.
    """

    def __init__(self, cluster: Cluster, spec: LaunchSpec, selector: selectors.BaseSelector, hear: Handler) -> None:
        self.cluster = cluster
        self.spec = spec
        self.hear = hear
        self._selector = selector
        self._next_beat = 0.0
        self._heard: dict[Channel, float] = {}

    @abc.abstractmethod
    def tell(self, kind: str, **what: Any) -> None:
        """Send to every other node."""

    @abc.abstractmethod
    def missing(self) -> list[int]:
        """Nodes not connected yet."""

    @abc.abstractmethod
    def addresses(self) -> list[str]:
        """This node's own address as a connection of it shows, then those of the nodes it is connected to, by rank."""

    def close_door(self) -> None:  # noqa: B027 - only node 0 has one
        """The job is ending: who comes now belongs to its next start."""

    def seconds_to_next_try(self) -> float:
        """When ``tick`` has something to do again before its usual time."""
        return BEAT_SECONDS

    def leave(self) -> None:
        """Send what is still queued, as far as it goes out within a second, and close."""
        deadline = time.monotonic() + 1.0
        for channel in list(self._heard):
            while channel.pending and not channel.closed and time.monotonic() < deadline:
                channel.flush()
                time.sleep(0.005)
            self._drop(channel)

    def tick(self) -> None:
        """Call often: sends the beat, and finds who has been silent for too long."""
        now = time.monotonic()
        if now >= self._next_beat:
            self._next_beat = now + BEAT_SECONDS
            for channel in self._heard:
                channel.send({"kind": "beat"})
        for channel, heard in list(self._heard.items()):
            channel.flush()
            if now - heard > self.spec.silence:  # its host or network vanished, or its launcher hangs
                channel.closed = True
                self._lost(channel)

    def _watch(self, channel: Channel) -> None:
        self._heard[channel] = time.monotonic()
        self._selector.register(channel, selectors.EVENT_READ, lambda: self._readable(channel))

    def _readable(self, channel: Channel) -> None:
        for message in channel.receive():
            if channel not in self._heard:  # refused at its first word
                return
            self._heard[channel] = time.monotonic()
            if message.get("kind") != "beat":
                self._message(channel, message)
        if channel.closed and channel in self._heard:
            self._lost(channel)

    def _drop(self, channel: Channel) -> None:
        if self._heard.pop(channel, None) is not None:
            self._selector.unregister(channel)
            channel.close()

    @abc.abstractmethod
    def _message(self, channel: Channel, message: Message) -> None:
        """Another node, or a stranger, says something."""

    @abc.abstractmethod
    def _lost(self, channel: Channel) -> None:
        """A connection is gone."""

    def _greeting(self) -> Message:
        return {"run": self.spec.run_id, "attempt": self.spec.attempt, "nodes": self.cluster.nodes}


class Head(Members):
    """Node 0: waits for the others and passes on what each has to say."""

    def __init__(self, cluster: Cluster, spec: LaunchSpec, selector: selectors.BaseSelector, hear: Handler) -> None:
        super().__init__(cluster, spec, selector, hear)
        self._node_of: dict[Channel, int] = {}
        self._done: set[int] = set()
        self._decided: list[Message] = []
        self._listener: socket.socket | None = None
        if cluster.nodes > 1:
            self._listener = _listen(cluster)
            selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def tell(self, kind: str, **what: Any) -> None:
        self._pass_on({"kind": kind, "node": 0, **what}, origin=0)

    def missing(self) -> list[int]:
        return sorted(set(range(1, self.cluster.nodes)) - set(self._node_of.values()) - self._done)

    def addresses(self) -> list[str]:
        channels = [channel for channel, _ in sorted(self._node_of.items(), key=lambda item: item[1])]
        return _addresses(channels)

    def leave(self) -> None:
        self.close_door()
        super().leave()

    def close_door(self) -> None:
        if self._listener:
            self._selector.unregister(self._listener)
            self._listener.close()
            self._listener = None

    def _pass_on(self, message: Message, origin: int) -> None:
        if message.get("kind") in _FINAL:
            self._decided.append(message)
        for channel, node in self._node_of.items():
            if node != origin:
                channel.send(message)

    def _accept(self) -> None:
        if self._listener is None:
            return
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._watch(Channel(sock))

    def _message(self, channel: Channel, message: Message) -> None:
        node = self._node_of.get(channel)
        if node is None:
            self._admit(channel, message)
            return
        message["node"] = message.get("node", node)
        if message.get("kind") == "done":
            self._done.add(node)
        self._pass_on(message, origin=node)
        self.hear(message)

    def _admit(self, channel: Channel, message: Message) -> None:
        reason = self._refusal(message)
        if reason:
            channel.send({"kind": "refused", "reason": reason})
            self._drop(channel)
            return
        self._node_of[channel] = message["node"]
        channel.send({"kind": "welcome"})
        for decided in self._decided:
            channel.send(decided)
        self.hear({"kind": "here", "node": message["node"]})

    def _refusal(self, message: Message) -> str | None:
        if not hmac.compare_digest(_bytes(message.get("token", "")), _bytes(self.cluster.token)):
            return "the caller does not belong to this run"
        expected = self._greeting()
        for name, value in expected.items():
            if message.get(name) != value:
                return f"node 0 runs {name} {value!r}, the caller {message.get(name)!r}"
        node = message.get("node")
        if type(node) is not int or not 1 <= node < self.cluster.nodes:
            return f"there is no node {node!r} among {self.cluster.nodes}"
        if node in self._node_of.values() or node in self._done:
            return f"node {node} is here already"
        return None

    def _lost(self, channel: Channel) -> None:
        node = self._node_of.pop(channel, None)
        self._drop(channel)
        if node is not None and node not in self._done:
            self.hear({"kind": "lost", "node": node})


class Member(Members):
    """Node k: keeps a connection to node 0, trying until it is there."""

    def __init__(self, cluster: Cluster, spec: LaunchSpec, selector: selectors.BaseSelector, hear: Handler) -> None:
        super().__init__(cluster, spec, selector, hear)
        self._head: Channel | None = None
        self._next_try = 0.0
        self._pause = 0.005
        self._answered = False
        self._unanswered: list[Message] = []
        """What was said, or is to be said, before node 0 answered."""
        self.last_error = "not tried yet"

    def tell(self, kind: str, **what: Any) -> None:
        message = {"kind": kind, "node": self.cluster.node, **what}
        if self._head:
            self._head.send(message)
        if not self._answered:
            self._unanswered.append(message)

    def missing(self) -> list[int]:
        return [] if self._answered else [0]

    def addresses(self) -> list[str]:
        return _addresses([self._head] if self._head else [])

    def tick(self) -> None:
        super().tick()
        if self._head is None and time.monotonic() >= self._next_try:
            self._connect()
            self._pause = min(self._pause * 2, _LONGEST_PAUSE_SECONDS)
            self._next_try = time.monotonic() + self._pause

    def seconds_to_next_try(self) -> float:
        return BEAT_SECONDS if self._head else max(0.0, self._next_try - time.monotonic())

    def _connect(self) -> None:
        host, port = self.cluster.head, self.cluster.port
        try:
            sock = socket.create_connection((host, port), timeout=_CONNECT_SECONDS)
        except (OSError, UnicodeError) as error:  # a label of a name may be too long to be looked up at all
            self.last_error = f"{host}:{port}: {error}"
            return
        if sock.getsockname() == sock.getpeername():  # a free local port can connect to itself
            sock.close()
            return
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = Channel(sock)
        self._watch(self._head)
        greeting = {"kind": "hello", "node": self.cluster.node, "token": self.cluster.token, **self._greeting()}
        self._head.send(greeting)
        for message in self._unanswered:
            self._head.send(message)

    def leave(self) -> None:
        if self._head is None and self._unanswered:
            self._connect()  # a last try: the others must not wait for this node
        super().leave()

    def _message(self, _: Channel, message: Message) -> None:
        self._answered = True
        self._unanswered.clear()
        self.hear(message)

    def _lost(self, channel: Channel) -> None:
        self._drop(channel)
        if self.cluster.is_cloud and not self._answered:
            self._head = None
            self.last_error = f"{self.cluster.head}:{self.cluster.port}: the connection was closed without an answer"
        else:
            self.hear({"kind": "lost", "node": 0})


def _bytes(token: object) -> bytes:
    """JSON and environments may hold halves of characters."""
    return str(token).encode("utf-8", "surrogatepass")


def _addresses(channels: list[Channel]) -> list[str]:
    """Both ends' addresses; those of the far end are left out where the connection has broken meanwhile."""
    found = [channels[0].sock.getsockname()[0]] if channels else ["127.0.0.1"]
    for channel in channels:
        with contextlib.suppress(OSError):
            found.append(channel.sock.getpeername()[0])
    return found


def _listen(cluster: Cluster) -> socket.socket:
    try:
        if cluster.listen_fd is not None:
            sock = socket.socket(fileno=cluster.listen_fd)
            sock.listen(128)
            return sock
        return socket.create_server(("", cluster.port), backlog=128)
    except OSError as error:
        raise LaunchError(f"node 0 cannot listen on port {cluster.port}: {error}", exits.NOT_STARTED) from error


def reserve_port() -> socket.socket:
    """A free TCP port that stays ours: bound but not listening, so that torch's store, and nobody else, can take it.

    The order matters. Bound without SO_REUSEADDR the port is given to no one who asks for a free one; set afterwards,
    the flag lets a socket that has it too (TCPStore's has) listen there.
    """
    sock = socket.socket()
    sock.bind(("", 0))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return sock
