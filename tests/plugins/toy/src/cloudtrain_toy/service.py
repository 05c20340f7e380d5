"""The service: a process for every job, which starts its nodes and outlives whoever has asked for it.

Waiting -> Booting -> Working -> Done | Broken | Halted
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

BOOT_SECONDS = 1.0
"""What the machines of a toy take to boot."""
GRACE_SECONDS = 30.0
_TICK_SECONDS = 0.05


def ask(folder: Path, lock: int) -> None:
    """Have the job in ``folder`` run; ``lock`` is an open file, locked, and is held until the job is over."""
    command = [sys.executable, "-m", "cloudtrain_toy.service", str(folder), str(lock)]
    with (folder / "service.log").open("ab") as log:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                       pass_fds=(lock,), check=True)  # fmt: skip


def say(folder: Path, state: str, **further: Any) -> None:
    """Replace the job's status."""
    file = folder / "status.json"
    said = json.loads(file.read_text()) if file.exists() else {}
    new = file.with_suffix(".new")
    new.write_text(json.dumps({**said, "state": state, **further}))
    new.replace(file)


def run(folder: Path) -> None:
    """A job from its start to its end."""
    job = json.loads((folder / "job.json").read_text())["native"]
    say(folder, "Booting")
    time.sleep(BOOT_SECONDS)
    with socket.create_server(("127.0.0.1", 0)) as meeting:
        nodes = [_start(folder, job, node, meeting) for node in range(job["nodes"])]
    say(folder, "Working", started=time.time())
    halted = _watch(folder, nodes)
    failed = [(number, node.returncode) for number, node in enumerate(nodes) if node.returncode]
    state = "Halted" if halted else "Broken" if failed else "Done"
    reason = "; ".join(f"node {number} exited with {code}" for number, code in failed)
    say(folder, state, ended=time.time(), reason=reason, codes=[node.returncode for node in nodes])


def _start(folder: Path, job: dict[str, Any], node: int, meeting: socket.socket) -> subprocess.Popen[bytes]:
    """Unlike what has a network of its own, node 0 is given the socket on which it waits for the others."""
    contract = {
        "CLOUDTRAIN_HOSTS": ",".join(["127.0.0.1"] * job["nodes"]),
        "CLOUDTRAIN_NODE_RANK": str(node),
        "CLOUDTRAIN_PORT": str(meeting.getsockname()[1]),
        "CLOUDTRAIN_NODE_CORES": str(max(1, (os.cpu_count() or 1) // job["nodes"])),
        **({"CLOUDTRAIN_LISTEN_FD": str(meeting.fileno())} if node == 0 else {}),
    }
    with (folder / f"node-{node}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-u", f"{job['code']}/launch.py"],
            cwd=folder, env={**os.environ, **job["variables"], **contract}, stdin=subprocess.DEVNULL,
            stdout=log, stderr=log, pass_fds=(meeting.fileno(),) if node == 0 else (),
        )  # fmt: skip


def _watch(folder: Path, nodes: list[subprocess.Popen[bytes]]) -> bool:
    """Until all nodes have ended; whether they were asked to."""
    asked: float | None = None
    while None in [node.poll() for node in nodes]:
        if asked is None and (folder / "stop").exists():
            asked = time.monotonic()
            _signal(nodes, signal.SIGTERM)
        if asked is not None and time.monotonic() > asked + GRACE_SECONDS:
            _signal(nodes, signal.SIGKILL)
        time.sleep(_TICK_SECONDS)
    return asked is not None


def _signal(nodes: list[subprocess.Popen[bytes]], number: signal.Signals) -> None:
    for node in nodes:
        with contextlib.suppress(ProcessLookupError):
            node.send_signal(number)


def main() -> None:
    folder, lock = Path(sys.argv[1]), int(sys.argv[2])
    if os.fork():  # who asks is answered at once
        os._exit(0)
    os.set_inheritable(lock, False)
    try:
        run(folder)
    except BaseException as error:
        say(folder, "Broken", ended=time.time(), reason=f"the service failed: {error!r}", codes=[])
        raise


if __name__ == "__main__":
    main()
