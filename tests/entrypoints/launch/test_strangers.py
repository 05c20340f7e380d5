"""Whoever else connects to node 0's port: refused with the reason where there is one to hear it, the run unharmed."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.entrypoints.launch.nodes import Job, Node

HELLO: dict[str, object] = {"kind": "hello", "node": 1, "run": "r1", "attempt": 1, "nodes": 2}

# Ends when told to, so that somebody can knock while it runs.
UNTIL_TOLD = """
import os, pathlib, time
here = pathlib.Path(os.environ["PROJECT"])
(here / f"up-{os.environ['RANK']}").touch()
while not (here / "enough").exists():
    time.sleep(0.02)
"""


def _call(node: Node, job: Job) -> socket.socket:
    """Connect to node 0 as soon as it listens."""
    found: list[socket.socket] = []

    def connected() -> bool:
        try:
            found.append(socket.create_connection(("127.0.0.1", job.port), timeout=60))
        except ConnectionRefusedError:
            return False
        return True

    node.wait_for(connected)
    return found[0]


def _answer(sock: socket.socket, said: bytes) -> bytes:
    """All that node 0 says to this, until it hangs up; its beat left out."""
    answer = b""
    try:
        sock.sendall(said)
        while data := sock.recv(4096):
            answer += data
    except (ConnectionResetError, BrokenPipeError):  # it has hung up with some of ours unread
        pass
    sock.close()
    return answer.replace(b'{"kind": "beat"}\n', b"")


@pytest.fixture
def head(job: Job) -> Node:
    job.write("print('trained')\n", processes_per_node=1)
    return job.start(0)


@contextmanager
def _then_the_run_goes_well(job: Job, head: Node) -> Iterator[None]:
    yield
    other = job.start(1)
    assert (head.end(), other.end()) == (0, 0), (head.out, head.err)
    assert "[0/0] trained" in head.out and "[1/1] trained" in other.out


def test_strangers(job: Job, head: Node) -> None:
    with _then_the_run_goes_well(job, head), ExitStack() as held_open:
        held_open.enter_context(_call(head, job))  # says nothing at all
        for said in (
            b"GET / HTTP/1.1\r\nHost: node-0\r\n\r\n",
            b"\x00\xff\xfe\n",
            b"[1, 2]\n",
            b"[" * 200_000 + b"\n",
            b"9" * 10_000 + b"\n",
            b"x" * (5 << 20),
        ):
            assert _answer(_call(head, job), said) == b""
        half = _call(head, job)
        half.sendall(b'{"kind": "hello", "no')
        half.close()
        reset = _call(head, job)
        reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        reset.close()


@pytest.mark.parametrize("told_twice", [False, True])
def test_callers_of_other_runs_hear_why_they_are_refused(job: Job, head: Node, told_twice: bool) -> None:
    wrong: list[tuple[dict[str, object], str]] = [
        ({"token": "guessed"}, "the caller does not belong to this run"),
        ({"token": "\ud800"}, "the caller does not belong to this run"),
        ({"run": "r2"}, "node 0 runs run 'r1', the caller 'r2'"),
        ({"attempt": 2}, "node 0 runs attempt 1, the caller 2"),
        ({"nodes": 3}, "node 0 runs nodes 2, the caller 3"),
        ({"node": 0}, "there is no node 0 among 2"),
        ({"node": 2}, "there is no node 2 among 2"),
        ({"node": "1"}, "there is no node '1' among 2"),
        ({"node": True}, "there is no node True among 2"),
        ({"node": None}, "there is no node None among 2"),
    ]
    with _then_the_run_goes_well(job, head):
        for change, reason in wrong:
            line = json.dumps({**HELLO, **change}).encode() + b"\n"
            answer = _answer(_call(head, job), line * (2 if told_twice else 1))
            assert json.loads(answer) == {"kind": "refused", "reason": reason}


def test_a_node_that_comes_late_hears_what_is_over(job: Job) -> None:
    """Told to those only who were there, it would leave the others waiting for a job that has ended."""
    job.hosts = ("127.0.0.1",) * 3
    job.write("print('trained')\n", processes_per_node=1)
    head = job.start(0)
    failure = {"kind": "launcher", "node": 1, "message": "node 1: broken", "time": 1.0}
    with _call(head, job) as first:
        for message in ({**HELLO, "nodes": 3}, {"kind": "failure", "failure": failure}, {"kind": "done"}):
            first.sendall(json.dumps(message).encode() + b"\n")
        answer = _answer(_call(head, job), json.dumps({**HELLO, "nodes": 3, "node": 2}).encode() + b"\n")
    heard = [message for line in answer.splitlines() if (message := json.loads(line))["kind"] != "welcome"]
    assert [(message["kind"], message["node"]) for message in heard] == [("failure", 1), ("done", 1), ("done", 0)]
    assert heard[0]["failure"] == failure
    assert head.end() == 125


def test_a_launcher_of_another_run_and_the_same_node_twice(job: Job) -> None:
    job.write(UNTIL_TOLD, processes_per_node=1)
    head, other = job.start(0), job.start(1)
    for rank in range(2):
        head.wait_for((job.folder / f"up-{rank}").exists)
    again = job.start(1, changed={"CLOUDTRAIN_NODE_DIR": str(job.folder / "again")})
    assert again.end() == 124
    assert "[1/-] failed first: node 0 refused this node: node 1 is here already" in again.out
    job.project.write("other.json", json.dumps({**job.spec, "run_id": "r2"}))
    theirs = {"CLOUDTRAIN_SPEC": str(job.folder / "other.json"), "CLOUDTRAIN_NODE_DIR": str(job.folder / "r2")}
    stranger = job.start(1, changed=theirs)
    assert stranger.end() == 124
    assert "node 0 refused this node: node 0 runs run 'r1', the caller 'r2'" in stranger.out
    (job.folder / "enough").touch()
    assert (head.end(), other.end()) == (0, 0), (head.out, other.out)
