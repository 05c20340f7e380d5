"""launch.py started directly, as a container would: nodes that meet, nodes that do not, how each one ends."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from pathlib import Path

import pytest

from tests.entrypoints.launch.nodes import Job
from tests.local.project import require

SAYS = """
import os
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], "on", os.environ["MASTER_ADDR"])
"""

# Rank 1, on node 0, goes wrong once all run; the others would go on for ever.
ONE_GOES_WRONG = """
import os, pathlib, signal, sys, time
here = pathlib.Path(os.environ["PROJECT"])
(here / f"up-{{os.environ['RANK']}}").touch()
while os.environ["RANK"] == "1" and len(list(here.glob("up-*"))) < 4:
    time.sleep(0.02)
if os.environ["RANK"] == "1":
    {what}
time.sleep(1000)
"""

WAITS = """
import os, pathlib, time
pathlib.Path(os.environ["PROJECT"], f"up-{os.environ['RANK']}").touch()
time.sleep(1000)
"""


def _up(job: Job, ranks: int = 2) -> None:
    """Start all nodes and wait until the scripts run."""
    for number in range(len(job.hosts)):
        job.start(number)
    for rank in range(ranks):
        job.nodes[0].wait_for((job.folder / f"up-{rank}").exists)


def test_two_nodes(job: Job) -> None:
    job.write(SAYS)
    assert job.run() == [0, 0], [node.err for node in job.nodes]
    for node, ranks in ((0, (0, 1)), (1, (2, 3))):
        lines = sorted(job.nodes[node].out.splitlines())
        assert lines == [
            f"[{node}/-] no rank joined a process group: each of them trained by itself",
            f"[{node}/-] node {node} succeeded, exit code 0",
            *(f"[{node}/{rank}] rank {rank} of 4 on 127.0.0.1" for rank in ranks),
        ]
        report = job.nodes[node].report
        assert report["started"] < report["ended"]
        del report["started"], report["ended"]
        assert report == {
            "version": 1, "node": node, "outcome": "succeeded", "exit_code": 0, "root": None, "failures": [],
            "ranks": [{"rank": rank, "status": 0, "joined": False} for rank in ranks],
        }  # fmt: skip


def test_a_node_that_starts_15_seconds_late(job: Job) -> None:
    """The second node's container is slower to come; `sh` stands for it."""
    job.write(SAYS, processes_per_node=1)
    job.start(0)
    job.start(1, before=("sh", "-c", 'sleep 15; exec "$@"', "sh"))
    assert [node.end() for node in job.nodes] == [0, 0], [node.err for node in job.nodes]
    assert "[1/1] rank 1 of 2 on 127.0.0.1" in job.nodes[1].out


@pytest.mark.parametrize("missing", [1, 0])
def test_a_node_that_never_comes(job: Job, missing: int) -> None:
    job.hosts = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
    job.write(SAYS, start_timeout=3.0)
    nodes = [job.start(number) for number in range(3) if number != missing]
    assert [node.end() for node in nodes] == [124, 124]
    if missing:
        expected = ["node 1 (127.0.0.2) did not connect to node 0 within 3 s"] * 2
    else:
        refused = f"within 3 s; last error: 127.0.0.1:{job.port}: [Errno 111] Connection refused"
        expected = [f"node {number} did not reach node 0 {refused}" for number in (1, 2)]
    for node, text in zip(nodes, expected, strict=True):
        assert f"[{node.number}/-] failed first: {text}" in node.out.splitlines()
        assert node.report["root"]["kind"] == "not-started"
        assert node.report["ranks"] == [
            {"rank": rank, "status": None, "joined": False} for rank in (2 * node.number, 2 * node.number + 1)
        ]


@pytest.mark.parametrize("name", ["no-such-host.invalid", "label-that-is-much-too-long-" * 5 + ".invalid"])
def test_a_host_name_that_means_nothing(job: Job, name: str) -> None:
    job.hosts = (name, "127.0.0.1")
    job.write(SAYS, start_timeout=1.0)
    node = job.start(1)
    assert node.end() == 124
    first = node.out.splitlines()[0]
    assert first.startswith(
        f"[1/-] failed first: node 1 did not reach node 0 within 1 s; last error: {name}:{job.port}"
    )
    assert "Traceback" not in node.out + node.err


@pytest.mark.parametrize(("number", "hosts"), [(0, ("127.0.0.1",) * 2), (1, ("no-such-host.invalid", "127.0.0.1"))])
def test_sigterm_before_all_nodes_are_here(job: Job, number: int, hosts: tuple[str, str]) -> None:
    job.hosts = hosts
    job.write(SAYS)
    node = job.start(number)
    node.wait_for(lambda: _catches_sigterm(node.process.pid))
    node.process.send_signal(signal.SIGTERM)
    assert node.end() == 143
    assert node.report["outcome"] == "preempted"


def _catches_sigterm(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.parametrize(
    ("what", "code", "message"),
    [
        ("sys.exit(7)", 7, "rank 1 on node 0 exited with code 7"),
        ("os.kill(os.getpid(), signal.SIGKILL)", 137, "rank 1 on node 0 was killed by SIGKILL"),
    ],
)
def test_every_node_ends_with_the_code_of_the_rank_that_failed(job: Job, what: str, code: int, message: str) -> None:
    job.write(ONE_GOES_WRONG.format(what=what))
    assert job.run() == [code, code], [node.out for node in job.nodes]
    for node in job.nodes:
        assert f"[{node.number}/-] failed first: {message}" in node.out
        assert node.out.endswith(f"[{node.number}/-] node {node.number} failed, exit code {code}\n")
        root = node.report["root"]
        assert (root["node"], root["rank"]) == (0, 1)
        assert root["message"].startswith(message)
        assert node.report["exit_code"] == code
    assert [rank["status"] for rank in job.nodes[1].report["ranks"]] == [-15, -15]


def test_preemption_of_one_node_ends_all_with_143(job: Job) -> None:
    job.write(WAITS, processes_per_node=1)
    _up(job)
    job.nodes[1].process.send_signal(signal.SIGTERM)
    assert [node.end() for node in job.nodes] == [143, 143]
    assert "[0/-] node 1 was told to stop, and so are all ranks" in job.nodes[0].out
    assert "[1/-] SIGTERM: all ranks are told to stop, at most 30 s" in job.nodes[1].out
    for node in job.nodes:
        assert (node.report["outcome"], node.report["root"], node.report["exit_code"]) == ("preempted", None, 143)
        assert "preempt" not in node.out  # somebody may have asked for it: in here the two are the same
        assert node.out.endswith(f"[{node.number}/-] node {node.number} stopped from outside, exit code 143\n")


def test_a_launcher_that_hangs_is_found_by_its_silence(job: Job) -> None:
    job.write(WAITS, processes_per_node=1, silence=5.0)
    _up(job)
    job.nodes[1].process.send_signal(signal.SIGSTOP)
    assert job.nodes[0].end() == 143
    assert "[0/-] failed first: node 1 (127.0.0.1) is lost" in job.nodes[0].out
    job.nodes[1].process.send_signal(signal.SIGCONT)
    assert job.nodes[1].end() == 143


COMPLAINS_OF_A_PEER = """
import os, pathlib, signal, time
here = pathlib.Path(os.environ["PROJECT"])
signal.signal(signal.SIGTERM, signal.SIG_IGN)
(here / f"up-{os.environ['RANK']}").touch()
while os.environ["RANK"] == "0":
    if (here / "lost").exists():
        raise RuntimeError("Connection closed by peer")
    time.sleep(0.02)
while True:
    time.sleep(1000)
"""


def test_a_rank_that_complains_before_its_peer_is_known_to_be_lost(job: Job) -> None:
    job.write(COMPLAINS_OF_A_PEER, silence=3.0)
    _up(job, ranks=4)
    job.nodes[1].process.send_signal(signal.SIGSTOP)
    (job.folder / "lost").touch()
    assert job.nodes[0].end() == 143
    assert "[0/-] failed first: node 1 (127.0.0.1) is lost" in job.nodes[0].out
    assert "RuntimeError: Connection closed by peer" in job.nodes[0].report["failures"][0]["message"]
    job.nodes[1].process.send_signal(signal.SIGCONT)
    job.nodes[1].end()


LEAVES_WHAT_NOBODY_CAN_KILL = """
import os, time
if os.fork() == 0:
    os.setuid(65534)
    time.sleep(1000)
raise ValueError("broken")
"""


def test_a_process_that_cannot_be_killed_is_given_up(job: Job) -> None:
    """As one in the driver of a lost GPU; here it is another user's, whom root without CAP_KILL cannot kill."""
    require(os.geteuid() == 0 and shutil.which("setpriv") is not None, "only root can make such a process")
    job.hosts = ("127.0.0.1",)
    job.write(LEAVES_WHAT_NOBODY_CAN_KILL, processes_per_node=1)
    node = job.start(0, before=("setpriv", "--bounding-set", "-kill"))
    assert node.end() == 1
    assert "[0/-] failed first: rank 0 on node 0: ValueError: broken" in node.out
    assert len(job.project.left_over()) == 1
    job.project.kill_left_over()


def test_a_port_that_is_taken(job: Job) -> None:
    job.write(SAYS)
    with socket.create_server(("", job.port)):
        node = job.start(0)
        assert node.end() == 124
    assert f"node 0 cannot listen on port {job.port}: [Errno 98] Address already in use" in node.out


def test_code_that_is_not_there(job: Job) -> None:
    job.hosts = ("127.0.0.1",)
    job.write(SAYS, code="elsewhere", processes_per_node=1)
    node = job.start(0)
    assert node.end() == 125
    assert "rank 0 on node 0 could not start the script: FileNotFoundError" in node.out


def test_folders_are_put_in(job: Job, tmp_path: Path) -> None:
    job.hosts = ("127.0.0.1",)
    args = ["${data.train}", "${checkpoint}/x", "$HOME", "${{data.train}}"]
    script = "import os, sys\nprint(sys.argv[1:], os.environ['WHERE'])\n"
    job.write(script, processes_per_node=1, args=args, env={"WHERE": "in ${model}"})
    folders = {f"CLOUDTRAIN_{name}_DIR": str(tmp_path / name) for name in ("CHECKPOINT", "MODEL")}
    node = job.start(0, changed={"CLOUDTRAIN_DATA_TRAIN": "/data", **folders})
    assert node.end() == 0
    seen = ["/data", f"{tmp_path}/CHECKPOINT/x", "$HOME", "${{data.train}}"]
    assert f"[0/0] {seen} in {tmp_path}/MODEL" in node.out.splitlines()
    assert (tmp_path / "CHECKPOINT").is_dir()


def test_a_folder_that_the_job_does_not_have(job: Job) -> None:
    job.write(SAYS, args=["${data.trian}"])
    node = job.start(0, changed={"CLOUDTRAIN_DATA_TRAIN": "/data"})
    assert node.end() == 125
    assert "${data.trian} names no folder of this job" in node.out
