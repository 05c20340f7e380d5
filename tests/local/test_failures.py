"""A job that goes wrong: the message leads with the cause, the exit code is right, and nothing is left running."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.local.project import HELLO, Project, require

ISOLATIONS = ["none", "netns"]
NO_CAPABILITIES = ("setpriv", "--bounding-set=-all,+setfcap", "--inh-caps=-all")
"""Runs a command as root without root's powers: it may do only what any other user may. (Without setfcap, uid 0, unlike
other users, may not be mapped into a user namespace.)"""

# Rank 3 goes wrong while the others are in, or on their way to, a collective.
FAILING = """
import os, sys, time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == 3:
    {what}
dist.all_reduce(torch.zeros(1))
time.sleep(1000)
"""


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("engine", ["fork", "agents"])
def test_a_rank_raises(project: Project, isolation: str, engine: str) -> None:
    project.job(FAILING.format(what="raise ValueError('the cause')"))
    result = project.run("--isolation", isolation, "--engine", engine)
    assert result.code == 1
    first = next(line for line in result.err.splitlines() if line.startswith("failed first"))
    assert first == "failed first: rank 3 on node 1: ValueError: the cause"
    assert 'train.py", line 6, in <module>' in result.err  # the traceback
    root = result.report["root"]
    assert (root["rank"], root["node"], root["kind"]) == (3, 1, "exception")
    assert root["traceback"].rstrip().endswith("ValueError: the cause")


def test_a_rank_exits_7(project: Project) -> None:
    project.job(FAILING.format(what="sys.exit(7)"))
    result = project.run("--isolation", "none")
    assert result.code == 1
    assert "failed first: rank 3 on node 1 exited with code 7" in result.err
    assert result.report["root"]["status"] == 7
    assert [node["status"] for node in result.report["nodes"]] == [7, 7]


def test_a_rank_leaves_by_os_exit_just_after_printing(project: Project) -> None:
    project.job(FAILING.format(what="print('last words', end=''); os._exit(5)"))
    result = project.run("--isolation", "none")
    assert result.code == 1
    assert "[1/3] last words" in result.out
    assert result.log(3) == b"last words"
    assert result.report["root"]["status"] == 5


def test_every_rank_leaves_by_os_exit_zero(project: Project) -> None:
    project.job("import os\nos._exit(0)\n")
    assert project.run("--isolation", "none").code == 0


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_rank_is_killed(project: Project, isolation: str) -> None:
    project.job(FAILING.format(what="os.kill(os.getpid(), 9)"))
    result = project.run("--isolation", isolation)
    assert result.code == 1
    assert "failed first: rank 3 on node 1 was killed by SIGKILL" in result.err
    assert result.report["root"]["status"] == -9


@pytest.mark.parametrize("node", [0, 1])
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_launcher_is_killed(project: Project, isolation: str, node: int) -> None:
    project.job(WAITING)
    running = project.start("--isolation", isolation)
    running.wait_for_files(*(f"up-{rank}" for rank in range(4)))
    os.kill(running.state()["node_pids"][node], signal.SIGKILL)
    result = running.end()
    assert result.code == 1
    assert f"failed first: node {node}: its launcher was killed by SIGKILL" in result.err


# All ranks are in the process group, then work alone: only the launchers can tell them that something happened.
WAITING = """
import os, pathlib, time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
pathlib.Path(os.environ["PROJECT"], f"up-{dist.get_rank()}").touch()
while True:
    time.sleep(0.1)
"""


def test_a_whole_node_is_killed(project: Project) -> None:
    project.job(WAITING)
    running = project.start("--isolation", "none")
    running.wait_for_files(*(f"up-{rank}" for rank in range(4)))
    launcher = running.state()["node_pids"][1]
    for pid in [launcher, *_below(launcher)]:
        os.kill(pid, signal.SIGKILL)
    result = running.end()
    assert result.code == 1
    assert "node 1" in result.err.split("failed first: ")[1].splitlines()[0]
    assert result.report["nodes"][1]["status"] == -9


def _below(root: int) -> list[int]:
    return [child.pid for child in psutil.Process(root).children(recursive=True)]


def test_a_failure_reaches_ranks_that_never_communicate(project: Project) -> None:
    script = WAITING.replace("while True:", "while dist.get_rank() != 2:") + "raise SystemExit('rank 2 gives up')\n"
    project.job(script)
    result = project.run("--isolation", "none")
    assert result.code == 1
    assert "rank 2 on node 1 exited with code 1" in result.err
    assert "[1/2] rank 2 gives up" in result.out


def test_a_script_that_leaves_a_process_behind(project: Project) -> None:
    project.job("import subprocess\nsubprocess.Popen(['sleep', '1000'])\nprint('left')\n")
    for isolation in ISOLATIONS:
        result = project.run("--isolation", isolation)
        assert result.code == 0
        assert result.out.count("left\n") == 4


def test_a_daemon_in_a_session_of_its_own_goes_as_well(project: Project) -> None:
    script = "import subprocess\nsubprocess.Popen(['setsid', 'sh', '-c', 'sleep 1000 & sleep 1000'])\n"
    project.job(script + "raise SystemExit(3)\n")
    assert project.run("--isolation", "none").code == 1


def test_a_script_with_a_syntax_error(project: Project) -> None:
    project.job("import torch\nprint('never'\n")
    result = project.run("--isolation", "none")
    assert result.code == 1
    assert "SyntaxError" in result.err.split("failed first: ")[1].splitlines()[0]
    assert "train.py" in result.err


def test_a_script_that_is_missing(project: Project) -> None:
    project.job()
    (project.folder / "train.py").unlink()
    result = project.run("--isolation", "none")
    assert result.code == 2
    assert "job.yaml:2:" in result.err and "train.py" in result.err
    assert result.folder is None


def test_a_script_that_does_not_ship(project: Project) -> None:
    project.job()
    project.write(".cloudtrainignore", "# models\ntrain*\n")
    result = project.run("--isolation", "none")
    assert result.code == 2
    assert ".cloudtrainignore:2" in result.err


def test_a_script_that_may_not_be_read(project: Project) -> None:
    require(os.geteuid() == 0, "takes root's powers away, so needs them")
    project.job()
    (project.folder / "train.py").chmod(0)
    result = project.run("--isolation", "none", prefix=NO_CAPABILITIES)
    assert result.code == 3
    assert "train.py" in result.err and "Permission denied" in result.err


def test_a_full_disk_under_the_run_folder(project: Project, small_disk: Path) -> None:
    script = "import os\nopen(os.environ['CLOUDTRAIN_OUTPUT_DIR'] + '/big', 'wb').write(b'x' * (64 << 20))\n"
    project.job(script, nodes=1, processes=2)
    result = project.run("--isolation", "none")
    assert result.code == 1
    assert "No space left on device" in result.err.split("failed first: ")[1].splitlines()[0]


def test_a_disk_that_is_full_from_the_start(project: Project, small_disk: Path) -> None:
    project.job()
    with pytest.raises(OSError, match="No space left"):
        (project.folder / "filler").write_bytes(b"x" * (64 << 20))
    result = project.run("--isolation", "none")
    assert result.code == 3
    assert "No space left on device" in result.err


def test_no_room_for_a_temporary_folder(project: Project) -> None:
    require(os.geteuid() == 0, "only root may mount a small disk")
    project.job()
    place = os.environ["TMPDIR"]
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=2", "tmpfs", place], check=True)  # one is its own
    try:
        result = project.run()
        assert list(Path(place).iterdir()) == []
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
    assert result.code == 3
    assert "cannot make a temporary folder: [Errno 28] No space left on device" in result.err


def test_an_import_that_hangs_on_one_node(project: Project) -> None:
    project.write("slow.py", "import time\nwhile True:\n    time.sleep(0.1)\n")
    project.job("import os\nif os.environ['NODE_RANK'] == '1':\n    import slow\n" + HELLO)
    result = project.run("--isolation", "none", "--start-timeout", "3s")
    assert result.code == 1
    first = result.err.split("failed first: ")[1].splitlines()[0]
    assert "node 1: ranks 2, 3 did not join the process group" in first
    assert "still importing" in first and "slow.py:" in first


def test_an_import_that_hangs_everywhere(project: Project) -> None:
    project.write("slow.py", "import time\nwhile True:\n    time.sleep(0.1)\n")
    project.job("import slow\n")
    result = project.run("--isolation", "none", "--start-timeout", "2s")
    assert result.code == 1
    assert "still importing" in result.err and "slow.py:" in result.err


def test_a_script_that_never_joins_is_left_alone(project: Project) -> None:
    project.job("import time\ntime.sleep(3)\nprint('done')\n", nodes=1)
    assert project.run("--isolation", "none", "--start-timeout", "1s").code == 0


def test_a_warden_is_killed(project: Project) -> None:
    """The process between elastic and a script is gone: that rank is the cause, not the ones elastic then ends."""
    script = WAITING.replace("while True:", "if dist.get_rank() == 1:\n    os.kill(os.getppid(), 9)\nwhile True:")
    project.job(script)
    result = project.run("--isolation", "none")
    assert result.code == 1
    assert "failed first: rank 1 on node 0 was killed by SIGKILL" in result.err


def test_the_host_process_is_killed_while_torch_is_loaded(project: Project) -> None:
    project.job(WAITING)
    running = project.start("--isolation", "none")
    running.wait_for((project.folder / ".cloudtrain/runs/latest/run.json").exists, "run.json")
    for child in psutil.Process(running.process.pid).children():
        child.kill()
    result = running.end()
    assert result.code == 5
    assert "the host process ended before its nodes did, with status -9" in result.err
    assert result.report["state"] == "FAILED"


def test_the_host_process_is_killed_while_the_job_runs(project: Project) -> None:
    project.job(WAITING)
    running = project.start("--isolation", "none", "--grace", "1s")
    running.wait_for_files(*(f"up-{rank}" for rank in range(4)))
    for child in psutil.Process(running.process.pid).children():
        child.kill()
    assert running.end().code == 5
    project.wait_until_none_is_left()


def test_the_host_process_is_killed_while_it_forks_the_nodes(project: Project) -> None:
    """A node asks the kernel to tell it of the host's end, and the host may have ended before."""
    project.job(WAITING, nodes=12, processes=1)
    running = project.start("--isolation", "netns", "--grace", "1s", "--start-timeout", "1h")
    first = project.folder / ".cloudtrain/runs/latest/logs/node-0.log"
    while not first.exists():
        assert running.process.poll() is None
    for child in psutil.Process(running.process.pid).children():
        child.kill()
    assert running.end().code == 5


def test_a_failure_ends_all_nodes_whatever_the_grace(project: Project) -> None:
    project.job(FAILING.format(what="raise ValueError"))
    report = project.run("--isolation", "none", "--grace", "1h").report
    assert report["ended"] - report["root"]["time"] < 10  # seconds; the bound that is promised


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--data=train=/tmp", "--data train: the job has no such channel; it has none"),
        ("--resume=nope", "there is no run 'nope'"),
        ("--device=gpu", "--device gpu: 1 x 1 processes need as many GPUs, this machine shows 0"),
        ("--nodes=3000", "3000 is not in the range"),
    ],
)
def test_what_is_wrong_is_told_before_torch_is_there(project: Project, option: str, said: str) -> None:
    project.write("slow/torch/__init__.py", "import time; time.sleep(1000)\n")
    project.job(nodes=1, processes=1)
    path = os.pathsep.join([str(project.folder / "slow"), os.environ.get("PYTHONPATH", "")])
    result = project.run(option, env={"PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": ""})
    assert result.code == 2
    assert said in result.err
    assert not (project.folder / ".cloudtrain").exists()


def test_a_script_is_no_job_file(project: Project) -> None:
    project.job()
    result = project.run(job="train.py")
    assert result.code == 2
    assert "train.py:1:1: this is a script; JOB is a job file, which names it:  entry: train.py" in result.err
