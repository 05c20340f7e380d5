"""Namespaces: without root's powers, and where the system forbids them."""

from __future__ import annotations

import os

import pytest

from tests.local.project import Project, may_isolate, require
from tests.local.test_failures import NO_CAPABILITIES

# A user namespace that allows no further one, then all powers dropped: a system that forbids what netns needs.
FORBIDDEN = (
    "unshare", "--user", "--map-root-user", "sh", "-c",
    'echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all --inh-caps=-all "$@"', "sh",
)  # fmt: skip


@pytest.fixture(autouse=True)
def permitted() -> None:
    require(may_isolate() and os.geteuid() == 0, "takes root's powers away, so needs them")


def test_without_root_powers(project: Project) -> None:
    project.job()
    result = project.run("--isolation", "netns", prefix=NO_CAPABILITIES)
    assert result.code == 0, result.err
    assert result.out.count("sum 6.0 world 4") == 4


def test_where_it_is_forbidden_auto_does_without_and_says_so(project: Project) -> None:
    project.job()
    result = project.run(prefix=FORBIDDEN)
    assert result.code == 0, result.err
    assert "namespaces are not permitted here" in result.err
    assert result.report["isolation"] == "none"


def test_where_it_is_forbidden_netns_is_an_error(project: Project) -> None:
    project.job()
    result = project.run("--isolation", "netns", prefix=FORBIDDEN)
    assert result.code == 3
    assert "namespaces are not permitted here" in result.err and "--isolation none" in result.err


def test_nodes_have_ports_of_their_own(project: Project) -> None:
    script = """
import socket, torch.distributed as dist
server = socket.create_server(("", 8080))   # on one machine without namespaces the second node could not
dist.init_process_group("gloo")
print("listening", socket.gethostname())
"""
    project.job(script, processes=1)
    result = project.run("--isolation", "netns")
    assert "listening node-0" in result.out and "listening node-1" in result.out


def test_shared_memory_has_the_size_asked_for(project: Project) -> None:
    project.job("import os\ns = os.statvfs('/dev/shm')\nprint('shm', s.f_blocks * s.f_frsize)\n", nodes=1, processes=1,
                extra="")  # fmt: skip
    project.write("job.yaml", "name: s\nentry: train.py\nresources: {shm_gib: 2}\n")
    assert "shm 2147483648" in project.run("--isolation", "netns").out
