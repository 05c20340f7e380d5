"""Google's script for RDMA machines, sourced by a real bash."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloudtrain_launch.errors import LaunchError
from cloudtrain_launch.gib import variables

SCRIPT = """
echo "chatter on standard output"
export NCCL_NET=gIB NCCL_CROSS_NIC=0 NCCL_IB_TC=52
export NCCL_TUNER_CONFIG_PATH="/usr/local/gib/configs/tuner config.txtpb"
export LD_LIBRARY_PATH=/usr/local/gib/lib64:$LD_LIBRARY_PATH
export MANY="two
lines"
not_exported=1
cd /
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "with space" / "set_nccl_env.sh"
    path.parent.mkdir()
    path.write_text(SCRIPT)
    return str(path)


PATH = {"PATH": "/usr/bin:/bin"}


def test_what_it_sets_is_taken(script: str) -> None:
    assert variables({**PATH, "LD_LIBRARY_PATH": "/usr/lib"}, {}, script) == {
        "NCCL_NET": "gIB",
        "NCCL_CROSS_NIC": "0",
        "NCCL_IB_TC": "52",
        "NCCL_TUNER_CONFIG_PATH": "/usr/local/gib/configs/tuner config.txtpb",
        "LD_LIBRARY_PATH": "/usr/local/gib/lib64:/usr/lib",
        "MANY": "two\nlines",
    }


def test_what_the_user_has_set_stays(script: str) -> None:
    taken = variables({**PATH, "NCCL_IB_TC": "64", "NCCL_CROSS_NIC": "1"}, {"NCCL_NET": "Socket"}, script)
    assert sorted(taken) == ["LD_LIBRARY_PATH", "MANY", "NCCL_TUNER_CONFIG_PATH"]


def test_other_machines_have_no_such_script() -> None:
    assert variables(PATH, {}, "/no/set_nccl_env.sh") == {}


def test_a_script_that_fails(tmp_path: Path) -> None:
    (tmp_path / "s.sh").write_text("echo no device >&2\nreturn 3\n")
    with pytest.raises(LaunchError, match=r"s\.sh failed: .*exit status 3.*no device"):
        variables(PATH, {}, str(tmp_path / "s.sh"))
