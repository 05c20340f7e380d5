"""The containers of a job: real processes, in networks of their own and without, sealed from the emulator's shell."""

from __future__ import annotations

import json
import os
import signal
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from cloudtrain.emulator.keeper import Keeper
from cloudtrain.emulator.nodes import Nodes
from cloudtrain.errors import MissingError
from cloudtrain.providers.local.options import Isolation
from tests.emulator.conftest import Start
from tests.emulator.containers import ends, plans, said, wait_for
from tests.local.project import LIMIT_SECONDS, may_isolate

SEES = """
import json, os, pathlib, socket, urllib.request
import torch, torch.distributed as dist
import cloudtrain_job
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank())])
dist.all_reduce(total)
seen = {
    "sum": total.item(), "host": socket.gethostname(), "env": dict(os.environ), "pid": os.getpid(),
    "answer": urllib.request.urlopen(os.environ["SERVICE"], timeout=30).read().decode(),
    "job": cloudtrain_job.__file__, "home": os.listdir(os.environ["HOME"]),
}
pathlib.Path(os.environ["SEEN"], f"seen-{dist.get_rank()}.json").write_text(json.dumps(seen))
print("hello from the script", flush=True)
dist.destroy_process_group()
"""

WAITS = """
import os, pathlib, signal, sys, time
def stop(number, frame):
    print("told to stop", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
pathlib.Path(os.environ["SEEN"], "runs-" + os.environ["RANK"]).touch()
while True:
    time.sleep(0.05)
"""

HOSTS = {
    "sagemaker": ["algo-1", "algo-2"],
    "vertex": ["cmle-training-workerpool0", "cmle-training-workerpool1"],
    "azureml": ["node-0", "node-1"],
}

ISOLATIONS = [
    "none",
    pytest.param("netns", marks=pytest.mark.skipif(not may_isolate() and not os.environ.get("CT_REQUIRE_ALL"),
                                                   reason="namespaces are not permitted here")),
]  # fmt: skip


@contextmanager
def _service() -> Iterator[str]:
    """A server of this machine's loopback."""

    class Answer(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.rfile.readline()
            self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\nfrom outside")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answer) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("provider", list(HOSTS))
def test_a_container_has_what_its_contract_gives_and_nothing_of_this_shell(
    folder: Path, start: Start, monkeypatch: pytest.MonkeyPatch, provider: str, isolation: Isolation
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "real")
    monkeypatch.setenv("WHATEVER", "of this shell")
    with _service() as url:
        planned = plans(folder, SEES, provider, variables={"SERVICE": url, "SEEN": str(folder), "EXTRA": "a b"})
        nodes = start(planned, isolation)
        assert ends(nodes, planned) == [0, 0], said(planned)
    for rank, plan in enumerate(planned):
        seen: dict[str, Any] = json.loads((folder / f"seen-{rank}.json").read_text())
        assert (seen["sum"], seen["answer"], seen["home"]) == (1.0, "from outside", [])
        assert seen["env"]["EXTRA"] == "a b"
        assert not {"AWS_SECRET_ACCESS_KEY", "WHATEVER", "PYTEST_CURRENT_TEST"} & set(seen["env"])
        assert Path(seen["job"]).is_relative_to(folder), "what came with the job"
        assert seen["host"].startswith(HOSTS[provider][rank]) == (isolation == "netns")
        log = plan.log.read_text()
        assert f"[{rank}/{rank}] hello from the script\n" in log
        assert f"[{rank}/-] node {rank} succeeded, exit code 0\n" in log


def test_what_runs_is_the_launcher_that_came_with_the_job(folder: Path, start: Start) -> None:
    planned = plans(folder, "print('ran', flush=True)", "sagemaker", nodes=1)
    launcher = folder / "code" / "cloudtrain_launch" / "banner.py"
    launcher.write_text(launcher.read_text().replace("network: ", "ALTERED network: "))
    assert ends(start(planned), planned) == [0]
    assert "ALTERED network: " in said(planned)


def test_variables_that_are_read_at_the_start_of_an_interpreter_are_there_in_time(folder: Path, start: Start) -> None:
    script = "import sys; print('hashes', sys.flags.hash_randomization, hash('a'), flush=True)"
    planned = plans(folder, script, "vertex", nodes=1, env={"PYTHONHASHSEED": "0"})
    assert ends(start(planned), planned) == [0], said(planned)
    alone = [sys.executable, "-c", script]
    expected = subprocess.run(alone, env={"PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=True).stdout
    assert f"[0/0] {expected}" in said(planned)


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_signal_is_for_the_first_process_of_a_node(folder: Path, start: Start, isolation: Isolation) -> None:
    """Which tells the other nodes, as on a cloud."""
    planned = plans(folder, WAITS, "sagemaker", variables={"SEEN": str(folder)})
    nodes = start(planned, isolation)
    wait_for(lambda: (folder / "runs-0").exists() and (folder / "runs-1").exists(), nodes, planned)
    assert not nodes.wait(0)
    assert [psutil.Process(pid).is_running() for pid in nodes.pids] == [True, True]
    nodes.signal(signal.SIGTERM, node=1)
    assert ends(nodes, planned) == [143, 143]
    assert "[1/-] SIGTERM: all ranks are told to stop" in planned[1].log.read_text()
    assert "[0/-] node 1 was told to stop" in planned[0].log.read_text()
    assert "[0/0] told to stop\n" in planned[0].log.read_text()
    nodes.signal(signal.SIGTERM)  # to nobody any more


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_lost_node_and_a_kill(folder: Path, start: Start, isolation: Isolation) -> None:
    planned = plans(folder, WAITS, "azureml", variables={"SEEN": str(folder)})
    nodes = start(planned, isolation)
    wait_for(lambda: (folder / "runs-0").exists() and (folder / "runs-1").exists(), nodes, planned)
    nodes.signal(signal.SIGKILL, node=1)
    status = ends(nodes, planned)
    assert status[1] == -signal.SIGKILL
    assert status[0] > 0
    assert "is lost: its launcher's connection broke" in planned[0].log.read_text()

    again = start([plan._replace(log=folder / f"again-{node}.log") for node, plan in enumerate(planned)], isolation)
    assert not again.wait(0.2)
    again.kill()
    assert again.poll() == {0: -signal.SIGKILL, 1: -signal.SIGKILL}
    again.close()
    again.close()
    assert again.poll() == {0: -signal.SIGKILL, 1: -signal.SIGKILL}


def test_exit_codes_are_those_of_the_containers(folder: Path, start: Start) -> None:
    planned = plans(folder, "import sys; sys.exit(7)", "sagemaker", nodes=1)
    assert ends(start(planned), planned) == [7], said(planned)


def test_several_jobs_at_once_each_in_its_own_network(tmp_path: Path, start: Start) -> None:
    """They have the same names and ports."""
    jobs = []
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        jobs.append(plans(tmp_path / str(number), "print('ran', flush=True)", "sagemaker"))
    running = [start(planned) for planned in jobs]
    assert [ends(nodes, planned) for nodes, planned in zip(running, jobs, strict=True)] == [[0, 0]] * 3


def test_nobody_installs_anything_into_this_python(folder: Path, start: Start) -> None:
    """Packages that are there satisfy the job, others fail it."""
    (folder / "project").mkdir()
    (folder / "project" / "requirements.txt").write_text("numpy\n")
    planned = plans(folder, "print('ran', flush=True)", "vertex", nodes=1, requirements="requirements.txt")
    assert ends(start(planned), planned) == [0], said(planned)
    assert "pip: Requirement already satisfied: numpy" in said(planned)


def test_without_a_file_to_write_to_the_node_says_so_itself(folder: Path, start: Start) -> None:
    planned = plans(folder, "print('ran')", "sagemaker", nodes=1)
    nodes = start([planned[0]._replace(log=folder / "no" / "such" / "folder")])
    assert nodes.wait(LIMIT_SECONDS)
    assert nodes.poll() == {0: 0}


def test_what_cannot_be_started_is_told(folder: Path, start: Start, keeper: Keeper) -> None:
    planned = plans(folder, "pass", "sagemaker", nodes=1)
    with pytest.raises(MissingError, match="the emulator ends"):
        Nodes(planned, "none", keeper.launch, is_over=lambda: True)
    nodes = start([planned[0]._replace(cwd=folder / "nowhere")])
    assert ends(nodes, planned) == [125]


OWNER = """
import sys, time
from pathlib import Path
from cloudtrain.emulator.keeper import Keeper
from cloudtrain.emulator.nodes import Nodes
from tests.emulator.containers import plans
folder = Path(sys.argv[1])
(folder / "kept").mkdir()
keeper = Keeper(folder / "kept")
nodes = Nodes(plans(folder, Path(sys.argv[3]).read_text(), "sagemaker", variables={"SEEN": str(folder)}), sys.argv[2],
              keeper.launch)
print(*nodes.pids, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_when_the_emulator_is_killed_nothing_is_left(folder: Path, temporary: Path, isolation: Isolation) -> None:
    (folder / "waits.py").write_text(WAITS)
    command = [sys.executable, "-c", OWNER, str(folder), isolation, str(folder / "waits.py")]
    root = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": str(root)}
    owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env, cwd=root)
    try:
        assert owner.stdout
        pids = [int(text) for text in owner.stdout.readline().split()]
        deadline = time.monotonic() + LIMIT_SECONDS
        while not ((folder / "runs-0").exists() and (folder / "runs-1").exists()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        everything = psutil.Process(owner.pid).children(recursive=True)
        assert {process.pid for process in everything} > set(pids)
    finally:
        owner.kill()
        owner.communicate()
    gone, left = psutil.wait_procs(everything, timeout=30)
    assert left == []
    assert len(gone) >= 6, "the keeper, a host process, two launchers, two ranks and more"
    assert not (folder / "kept").exists()
    assert list(temporary.iterdir()) == []
