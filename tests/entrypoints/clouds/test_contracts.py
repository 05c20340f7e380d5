"""launch.py on two nodes of each cloud: one process group, the same things seen on all of them, argv byte for byte."""

from __future__ import annotations

import json
import re
import select
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.entrypoints.clouds.conftest import Make
from tests.entrypoints.clouds.nodes import FOLDERS, packed

PROVIDERS = ["sagemaker", "vertex", "azureml"]
ARGS = [
    "", " ", "a b", "--lr", "007", "$HOME", "${HOME}", "$(id)", "`id`", "${{inputs.train}}", "'", '"', "\\", "*", "~",
    "two\nlines", "\t", "ünï\u2028", "-", "--", "%s", "!", "#", "&&", "{", "${data.train}", "x=${checkpoint}/y",
]  # fmt: skip


@pytest.mark.parametrize("provider", PROVIDERS)
def test_two_nodes(provider: str, make: Make) -> None:
    job = make(provider)
    job.data("a.txt", "x")
    job.write(args=ARGS, env={"MINE": "${model}", "WORLD": "w"})
    assert job.run() == [0, 0], job.said
    for rank in range(4):
        seen = job.seen(rank)
        env = seen["env"]
        node = rank // 2
        assert seen["sum"] == 6.0
        assert seen["argv"] == [
            "hello.py",
            *ARGS[:-2],
            env["CLOUDTRAIN_DATA_TRAIN"],
            f"x={env['CLOUDTRAIN_CHECKPOINT_DIR']}/y",
        ]
        assert env["MINE"] == env["CLOUDTRAIN_MODEL_DIR"]
        expected = {
            "RANK": rank, "LOCAL_RANK": rank % 2, "WORLD_SIZE": 4, "LOCAL_WORLD_SIZE": 2, "GROUP_RANK": node,
            "NODE_RANK": node, "CLOUDTRAIN_NODES": 2, "CLOUDTRAIN_ATTEMPT": 3, "CLOUDTRAIN_RUN_ID": "r1",
            "CLOUDTRAIN_PROVIDER": provider, "MASTER_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo", "WORLD": "w",
            "CLOUDTRAIN_HOSTS": "127.0.0.1,127.0.0.1" if provider == "azureml" else ",".join(job.hosts),
        }  # fmt: skip
        assert {name: env.get(name) for name in expected} == {name: str(value) for name, value in expected.items()}
        for foreign in ("CLUSTER_SPEC", "TF_CONFIG", "AZUREML_EXPERIMENT_ID", "TRAINING_JOB_NAME", "CLOUDTRAIN_TOKEN"):
            assert foreign not in env
        for name in FOLDERS:
            assert env[f"CLOUDTRAIN_{name}"].startswith("/")
    for started in job.nodes:
        first = started.out.splitlines()[0]
        assert first.startswith(f"[{started.number}/-] {provider}: node {started.number} of 2 (")
        assert "node 0 at 127.0.0.1:" in first


@pytest.mark.parametrize("provider", PROVIDERS)
def test_one_node(provider: str, make: Make) -> None:
    job = make(provider, count=1)
    job.write()
    assert job.run() == [0], job.said
    assert [job.seen(rank)["sum"] for rank in (0, 1)] == [1.0, 1.0]
    assert job.seen(1)["env"]["MASTER_ADDR"] == "127.0.0.1"


def test_a_vertex_job_without_any_cluster_spec(make: Make) -> None:
    job = make("vertex", count=1)
    job.write()
    job.start(0, changed={"CLUSTER_SPEC": None})
    assert job.nodes[0].end() == 0, job.said
    assert job.seen(0)["env"]["CLOUDTRAIN_HOSTS"] == "127.0.0.1"


def test_what_scripts_expect_of_sagemaker(make: Make) -> None:
    job = make("sagemaker", variables={"NCCL_SOCKET_IFNAME": "eth7"})
    job.write(env={"TP_SOCKET_IFNAME": "eth8", "SM_MINE": "yes"})
    assert job.run() == [0, 0], job.said
    env = job.seen(3)["env"]
    root = str(job.opt_ml[1])
    expected = {
        "SM_MODEL_DIR": f"{root}/model", "SM_OUTPUT_DATA_DIR": f"{root}/output/data", "SM_CURRENT_HOST": "algo-2",
        "SM_CHANNEL_TRAIN": f"{root}/input/data/train", "SM_HOSTS": '["algo-1", "algo-2"]', "SM_HPS": "{}",
        "SM_NUM_GPUS": "0", "SM_MINE": "yes",
    }  # fmt: skip
    assert {name: value for name, value in env.items() if name.startswith("SM_")} == expected
    assert (env["NCCL_SOCKET_IFNAME"], env["TP_SOCKET_IFNAME"], env["GLOO_SOCKET_IFNAME"]) == ("eth7", "eth8", "lo")
    assert "network: GLOO_SOCKET_IFNAME=lo NCCL_SOCKET_IFNAME=eth7 TP_SOCKET_IFNAME=eth8" in job.nodes[0].out


def test_the_store_is_reached_by_the_address_that_node_0_sees(make: Make) -> None:
    """On Vertex the name is a service's, behind which one port only leads to node 0. Here a forwarder stands for it."""
    job = make("vertex")
    job.write()
    with _forwarding_to(job.port) as (port, turned_away):
        service = json.loads(job.environment(1, {})["CLUSTER_SPEC"])
        service["cluster"]["workerpool0"] = [f"host-0:{port}"]
        early = job.start(1, changed={"CLOUDTRAIN_HOSTMAP": "host-0=127.0.0.3", "CLUSTER_SPEC": json.dumps(service)})
        early.wait_for(turned_away.is_set)  # the service takes its connection before node 0 is there, and drops it
        job.start(0, changed={"CLOUDTRAIN_HOSTMAP": "host-0=127.0.0.9"})
        assert [node.end() for node in job.nodes] == [0, 0], job.said
    assert {job.seen(rank)["env"]["MASTER_ADDR"] for rank in range(4)} == {"127.0.0.1"}


def test_a_reason_of_many_nodes_is_told_in_few_words(make: Make) -> None:
    job = make("sagemaker", count=1)
    job.write(nodes=300, start_timeout=1.0)
    resources = {"current_host": "algo-1", "hosts": [f"algo-{number}" for number in range(1, 301)]}
    environment = job.environment(0, {})
    (job.opt_ml[0] / "input/config/resourceconfig.json").write_text(json.dumps(resources))
    job.environment = lambda *_: environment  # type: ignore[method-assign]
    assert job.run() == [124]
    reason = (job.opt_ml[0] / "output/failure").read_text()
    assert reason.startswith("node 1 (algo-2), node 2 (algo-3), ")
    assert reason.endswith("node 8 (algo-9) and 291 more did not connect to node 0 within 1 s")


@contextmanager
def _forwarding_to(port: int) -> Iterator[tuple[int, threading.Event]]:
    """Whoever connects to the yielded port of 127.0.0.3 is connected to ``port`` of 127.0.0.1; the event is set once
    nobody was there."""
    turned_away = threading.Event()

    class Forward(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                there = socket.create_connection(("127.0.0.1", port))
            except ConnectionRefusedError:
                turned_away.set()
                return
            with there:
                ends = {self.request: there, there: self.request}
                while True:
                    for end in select.select(list(ends), [], [])[0]:
                        data = end.recv(4096)
                        if not data:
                            return
                        ends[end].sendall(data)

    with socketserver.ThreadingTCPServer(("127.0.0.3", 0), Forward) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_address[1], turned_away
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_wrong_number_of_nodes(provider: str, make: Make) -> None:
    job = make(provider)
    job.write(nodes=3)
    node = job.start(1)
    assert node.end() == (1 if provider == "vertex" else 125)
    assert re.search(r" asks for 3 nodes, but .* names 2\n\Z| nodes is 3, but WORLD_SIZE says 2\b", node.err)
    assert len(node.err.splitlines()) == 1
    assert node.out == ""


@pytest.mark.parametrize("pool", ["workerpool2", "workerpool9"])
def test_a_vertex_replica_that_is_not_to_train(pool: str, make: Make) -> None:
    job = make("vertex")
    job.write()
    spec = json.loads(job.environment(1, {})["CLUSTER_SPEC"])
    spec["task"]["type"] = pool
    node = job.start(1, changed={"CLUSTER_SPEC": json.dumps(spec)})
    assert node.end() == 1
    assert node.err.startswith(f"cloudtrain launch: this replica is in '{pool}', and only workerpool0 and workerpool1")


@pytest.mark.parametrize("attempt", ["0", "-1", "one"])
def test_an_attempt_that_is_none(attempt: str, make: Make) -> None:
    job = make("vertex")
    job.write()
    node = job.start(0, changed={"CLOUDTRAIN_ATTEMPT": attempt})
    assert node.end() == 1
    assert node.err == f"cloudtrain launch: CLOUDTRAIN_ATTEMPT is '{attempt}', which is not a whole number from 1\n"


def test_attempts_that_differ_do_not_meet(make: Make) -> None:
    """A node of the attempt before, late to die, must not take a place in this one."""
    job = make("azureml")
    job.write(start_timeout=3.0)
    job.start(0)
    job.start(1, changed={"CLOUDTRAIN_ATTEMPT": "2"})
    assert [node.end() for node in job.nodes] == [124, 124]
    assert "node 0 refused this node: node 0 runs attempt 3, the caller 2" in job.nodes[1].out


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"nodes": 0}, "nodes must be a whole number from 1, not 0"),
        ({"requirements": ["a"]}, "requirements must be text, not ['a']"),
        ({"channels": ["train"]}, "channels must be channels with mode mount|download and shard replicate|by-object"),
        ({"channels": {"train": {"mode": "stream"}}}, "channels must be channels with mode"),
        ({"channels": {"train": {"colour": "red"}}}, "channels must be channels with mode"),
        ({"channels": {"train": "mount"}}, "channels must be channels with mode"),
    ],
)
def test_a_broken_spec(spec: dict[str, Any], message: str, make: Make) -> None:
    job = make("azureml")
    job.write(**spec)
    node = job.start(0)
    assert node.end() == 125
    assert message in node.err


def test_a_hostile_archive_ends_the_job_on_all_nodes(make: Make) -> None:
    job = make("vertex", archive=packed({"hello.py": "", "../evil.py": "x"}))
    job.write()
    assert job.run() == [1, 1]
    for node in job.nodes:
        assert "code.tar.gz holds '../evil.py', which is not a plain relative path" in node.out
        assert node.report["root"]["kind"] == "launcher"
