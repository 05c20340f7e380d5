"""A launcher whose output nobody takes any more, or not yet; one that fails before it can say so."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

from cloudtrain_launch.sink import EventSink
from tests.entrypoints.launch.nodes import Job


def test_standard_output_that_is_closed_does_not_end_the_node(job: Job) -> None:
    job.hosts = ("127.0.0.1",)
    job.write("for i in range(100_000):\n    print(i)\n", processes_per_node=1)
    node = job.start(0)
    assert node.process.stdout is not None
    node.process.stdout.readline()
    node.process.stdout.close()
    assert node.process.wait() == 0
    assert node.report["outcome"] == "succeeded"


def test_a_follower_that_pauses_still_hears_all() -> None:
    ours, theirs = socket.socketpair()
    sink = EventSink(0, ours.detach())
    for _ in range(4000):
        sink.line(0, "x" * 200)
    sink.event("report", report={})
    closing = threading.Thread(target=sink.close)
    closing.start()
    closing.join(6)
    assert closing.is_alive()
    with theirs.makefile("rb") as lines:
        assert len(lines.readlines()) == 4001
    theirs.close()
    closing.join()


def test_an_unexpected_fault_is_not_silent(job: Job) -> None:
    job.write("print('never')\n")
    node = job.start(0, changed={"CLOUDTRAIN_NODE_TMP": "/proc/no"})
    assert node.end() == 125
    assert "/proc/no" in node.out + node.err


def test_nothing_is_left_in_the_temporary_folder(job: Job, tmp_path: Path) -> None:
    job.hosts = ("127.0.0.1",)
    job.write("print('x')\n", processes_per_node=1)
    assert job.run() == [0]
    assert list(Path(os.environ["TMPDIR"]).iterdir()) == []
