"""This node's ranks as the launcher sees them: what each one announced, its output, its end."""

from __future__ import annotations

import os
import selectors
import signal
import socket
from dataclasses import dataclass
from typing import Callable

from cloudtrain_launch import processes
from cloudtrain_launch.channel import Channel, Message
from cloudtrain_launch.output import Stream
from cloudtrain_launch.sink import Sink
from cloudtrain_launch.worker import WorkerConfig


@dataclass
class Rank:
    """One rank of this node."""

    rank: int
    local_rank: int
    warden: int | None = None
    """Process id of its warden, once started."""
    script: int | None = None
    """Process id of the user's script, once started."""
    joining: bool = False
    """Has entered ``init_process_group``."""
    joined: bool = False
    error: Message | None = None
    """What it raised: ``message``, ``traceback``, ``time``."""
    status: int | None = None
    """Exit status, once ended; negative is a signal."""


OnEvent = Callable[[str, Rank, Message], None]


class Workers:
    """Listens to the wardens and reads the ranks' pipes. ``on_event(kind, rank, message)`` hears what they announce."""

    def __init__(
        self,
        config: WorkerConfig,
        ranks: list[Rank],
        log_folder: str,
        selector: selectors.BaseSelector,
        sink: Sink,
        on_event: OnEvent,
    ) -> None:
        self.ranks = ranks
        self._config = config
        self._selector = selector
        self._on_event = on_event
        self._channels: dict[Channel, Rank | None] = {}
        self._streams = [self._open_stream(rank, log_folder, sink) for rank in ranks]
        self._reading = False
        self.read_output(True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(config.socket)
        self._listener.listen(len(ranks) + 8)
        selector.register(self._listener, selectors.EVENT_READ, self._accept)

    @property
    def started(self) -> bool:
        """Whether any warden has started."""
        return any(rank.warden is not None for rank in self.ranks)

    @property
    def all_ended(self) -> bool:
        """Whether every rank has ended."""
        return all(rank.status is not None for rank in self.ranks)

    def signal(self, sig: int, but: Rank | None = None) -> None:
        """Signal every rank that runs; its warden hands SIGTERM on to the script alone."""
        for rank in self.ranks:
            if rank.warden and rank.status is None and rank is not but:
                processes.send(rank.warden, sig)

    def kill(self) -> None:
        """SIGKILL the scripts; their wardens then report the end."""
        for rank in self.ranks:
            if rank.script and rank.status is None:
                processes.send(rank.script, signal.SIGKILL)

    def read_output(self, wanted: bool) -> None:
        """Stop reading the ranks' pipes when whoever is shown them does not keep up, so that memory stays bounded."""
        if wanted == self._reading:
            return
        self._reading = wanted
        for stream in self._streams:
            if not stream.ended:
                self._switch(stream, wanted)

    def finish(self) -> None:
        """Read what is left in the pipes."""
        for stream in self._streams:
            if self._reading and not stream.ended:
                self._switch(stream, False)
            stream.finish()
        self._selector.unregister(self._listener)
        self._listener.close()
        for channel in self._channels:
            self._selector.unregister(channel)
            channel.close()

    def _open_stream(self, rank: Rank, log_folder: str, sink: Sink) -> Stream:
        path = self._config.pipe(rank.local_rank)
        os.mkfifo(path, 0o600)
        return Stream(
            os.open(path, os.O_RDONLY | os.O_NONBLOCK),
            os.path.join(log_folder, f"rank-{rank.rank}.log"),
            show=lambda text: sink.line(rank.rank, text),
            complain=lambda text: sink.line(None, f"rank {rank.rank}: {text}"),
        )

    def _switch(self, stream: Stream, on: bool) -> None:
        if on:
            self._selector.register(stream, selectors.EVENT_READ, lambda: self._pump(stream))
        else:
            self._selector.unregister(stream)

    def _pump(self, stream: Stream) -> None:
        stream.pump()
        if stream.ended:
            self._switch(stream, False)

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return
        channel = Channel(sock)
        self._channels[channel] = None
        self._selector.register(channel, selectors.EVENT_READ, lambda: self._hear(channel))

    def _hear(self, channel: Channel) -> None:
        for message in channel.receive():
            local_rank = message.get("local_rank")
            if isinstance(local_rank, int) and 0 <= local_rank < len(self.ranks):
                self._channels[channel] = self.ranks[local_rank]
                self._note(self.ranks[local_rank], message)
        if channel.closed:
            self._selector.unregister(channel)
            rank = self._channels.pop(channel)
            channel.close()
            if rank and rank.status is None:  # its warden was killed, and the script with it
                self._note(rank, {"kind": "exit", "status": -signal.SIGKILL})

    def _note(self, rank: Rank, message: Message) -> None:
        kind = message.get("kind", "")
        if kind == "started":
            rank.warden = message["pid"]
        elif kind == "script":
            rank.script = message["pid"]
        elif kind == "joining":
            rank.joining = True
        elif kind == "joined":
            rank.joined = True
        elif kind == "error":
            rank.error = message
        elif kind == "exit":
            rank.status = message["status"]
        self._on_event(kind, rank, message)
