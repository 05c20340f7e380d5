"""The emulator's second process: makes host processes quickly, and tidies up after the emulator however that ends.

It loads torch once, when it is told that nodes may soon be wanted, and forks every host process from that: one start of
a job is then a matter of milliseconds, not of the seconds that torch takes. When the emulator is gone it waits for the
host processes, which kill their nodes at that, and removes the emulator's folder. Imports nothing of cloudtrain but the
host process.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
from typing import Any, NoReturn

from cloudtrain.providers.local import host
from cloudtrain_launch import layout, processes

_MOST_BYTES = 1 << 16


def main(control: int, folder: str) -> NoReturn:
    """Run as ``python -c``, with the number of the control socket."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # who ends a whole group ends the emulator, and so this
        _serve(socket.socket(fileno=control))
    finally:
        layout.remove(folder)
        os._exit(0)


def _serve(control: socket.socket) -> None:
    """Until the emulator and all host processes are gone."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, _MOST_BYTES, 2)
        message = json.loads(data) if data else {"kind": "end"}
        if message["kind"] == "end":
            break
        if message["kind"] == "warm":
            _load_torch()
        else:
            _fork_host(control, message, descriptors)
        processes.reap()
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def _load_torch() -> None:
    host.load_torch()
    gc.freeze()  # the collector would touch, and so copy, every page that the host processes share


def _fork_host(control: socket.socket, message: dict[str, Any], descriptors: list[int]) -> None:
    pid = os.fork()
    if pid:
        pidfd = os.pidfd_open(pid)  # before it can be reaped: its number is its own until then
        socket.send_fds(control, [b"."], [pidfd])
        for fd in (*descriptors, pidfd):
            os.close(fd)
        return
    try:
        control.close()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for number, fd in enumerate(descriptors):
            os.dup2(fd, number)
            os.close(fd)
        host.main(message["isolation"], message["engine"], message["folder"])
    finally:
        os._exit(1)
