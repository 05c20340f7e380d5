"""Who a process is, from what its launcher says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cloudtrain_job.errors import WorldError
from cloudtrain_job.folders import MissingFolder, read_places
from cloudtrain_job.world import IDENTITY, World, read_world
from tests.entrypoints.job.ranks import ENTRYPOINTS, Ranks, clean_environment, worker_environment

TORCHRUN = {
    "RANK": "5",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "8",
    "LOCAL_WORLD_SIZE": "4",
    "MASTER_ADDR": "10.0.0.1",
    "MASTER_PORT": "29500",
    "GROUP_RANK": "1",
}


def test_nothing_set_is_a_world_of_one() -> None:
    assert read_world({"PATH": "/bin"}) == World(0, 0, 1, 1, 0, 1, (), alone=True)


def test_torchrun() -> None:
    assert read_world(TORCHRUN) == World(5, 1, 8, 4, 1, 2, (), alone=False)


def test_the_launcher_adds_nodes_and_hosts() -> None:
    ours = {"NODE_RANK": "2", "CLOUDTRAIN_NODES": "3", "CLOUDTRAIN_HOSTS": "a,b,c"}
    world = read_world({**TORCHRUN, **ours})
    assert (world.node, world.nodes, world.hosts) == (2, 3, ("a", "b", "c"))


@pytest.mark.parametrize("missing", IDENTITY)
def test_one_variable_missing_is_refused_by_name(missing: str) -> None:
    with pytest.raises(WorldError, match=rf"{missing} not: this is half of what a launcher sets"):
        read_world({name: value for name, value in TORCHRUN.items() if name != missing})


@pytest.mark.parametrize("only", [("RANK", "WORLD_SIZE"), ("MASTER_ADDR", "MASTER_PORT"), ("WORLD_SIZE",)])
def test_what_some_platforms_set_per_node_is_refused(only: tuple[str, ...]) -> None:
    with pytest.raises(WorldError, match=" ".join(only)):
        read_world({name: TORCHRUN[name] for name in only})


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("RANK", "8", "RANK=8 does not lie in a world of WORLD_SIZE=8"),
        ("RANK", "-1", "RANK=-1"),
        ("LOCAL_RANK", "4", "LOCAL_RANK=4 does not lie in LOCAL_WORLD_SIZE=4"),
        ("LOCAL_WORLD_SIZE", "9", "LOCAL_WORLD_SIZE=9 is more than WORLD_SIZE=8"),
        ("WORLD_SIZE", "two", "WORLD_SIZE='two' in the environment is not a whole number"),
        ("MASTER_PORT", "http", "MASTER_PORT='http'"),
    ],
)
def test_nonsense_is_refused(variable: str, value: str, message: str) -> None:
    with pytest.raises(WorldError, match=message):
        read_world({**TORCHRUN, variable: value})


def test_init_refuses_a_half_set_environment(ranks: Ranks, tmp_path: Path) -> None:
    program = "import cloudtrain_job as ctj\nctj.init()\nprint('trained alone')\n"
    ended = ranks.code(program, world=1, folder=tmp_path, without=["MASTER_ADDR", "MASTER_PORT"])
    assert ended.codes == [1]
    assert "MASTER_ADDR MASTER_PORT not: this is half of what a launcher sets" in ended.output
    assert "trained alone" not in ended.output


def test_context_says_what_the_launcher_said(ranks: Ranks, tmp_path: Path) -> None:
    env = {
        "NODE_RANK": "1",
        "CLOUDTRAIN_NODES": "2",
        "CLOUDTRAIN_HOSTS": "left,right",
        "CLOUDTRAIN_RUN_ID": "digits-1",
        "CLOUDTRAIN_ATTEMPT": "2",
        "CLOUDTRAIN_PROVIDER": "local",
        "CLOUDTRAIN_GRACE": "12.5",
        "CLOUDTRAIN_DATA_TRAIN": "/data/train",
        "CLOUDTRAIN_OUTPUT_METRICS": "/out/m",
    }
    program = (
        "import cloudtrain_job as ctj\n"
        "ctx = ctj.init()\n"
        "assert ctj.init() is ctx is ctj.current()\n"
        "print(ctx.rank, ctx.world_size, ctx.node, ctx.nodes, ctx.hosts, ctx.device, ctx.is_main)\n"
        "print(ctx.run_id, ctx.attempt, ctx.provider, ctx.grace, ctx.data['train'], ctx.outputs['Metrics'])\n"
        "print(ctx.sum(ctx.rank, 0.5), ctx.any(False, ctx.is_main), ctx.gather(ctx.rank), ctx.broadcast(ctx.rank))\n"
        "ctj.finish()\n"
        "ctj.finish()\n"
    )
    ended = ranks.code(program, world=2, folder=tmp_path, env=env).succeeded()
    assert ended.outputs[1].splitlines() == [
        "1 2 1 2 ('left', 'right') cpu False",
        "digits-1 2 local 12.5 /data/train /out/m",
        "(1.0, 1.0) (False, True) [0, 1] 0",
    ]


def test_a_folder_that_is_not_there_is_named_with_those_that_are() -> None:
    data = read_places(
        {"CLOUDTRAIN_DATA_TRAIN": "/t", "CLOUDTRAIN_DATA_VAL_2": "/v", "CLOUDTRAIN_OUTPUT_DIR": "/o"}
    ).data
    assert dict(data) == {"train": Path("/t"), "val_2": Path("/v")}
    with pytest.raises(MissingFolder) as caught:
        data["trian"]
    assert str(caught.value) == "this job has no data channel 'trian'; it has: train, val_2; did you mean 'train'?"


def test_without_a_launcher_folders_lie_out_of_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    places = read_places({})
    assert places.checkpoints == tmp_path / ".cloudtrain" / "plain" / "checkpoints"
    assert (dict(places.data), dict(places.outputs)) == ({}, {})


def test_importing_the_package_does_not_import_torch() -> None:
    program = "import sys, cloudtrain_job; cloudtrain_job.log; print('torch' in sys.modules)"
    assert _python(program).stdout == "False\n"


def test_plain_python_is_a_world_of_one_where_ddp_works() -> None:
    program = (
        "import torch, cloudtrain_job as ctj\n"
        "ctx = ctj.init()\n"
        "model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))\n"
        "model(torch.ones(1, 2)).sum().backward()\n"
        "print(ctx.rank, ctx.world_size, ctx.sum(2.0))\n"
    )
    assert _python(program).stdout == "0 1 (2.0,)\n"


def test_every_public_name_is_there_and_explained() -> None:
    program = (
        "import cloudtrain_job as ctj\n"
        "print([name for name in dir(ctj) if not getattr(ctj, name).__doc__])\n"
        "print(type(ctj.loader).__name__)\n"
    )
    assert _python(program).stdout == "[]\nfunction\n"


def _python(program: str) -> subprocess.CompletedProcess[str]:
    env = {**clean_environment(), "PYTHONPATH": str(ENTRYPOINTS)}
    return subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)


def test_the_harness_sets_what_torchrun_sets() -> None:
    assert set(IDENTITY) <= worker_environment(0, 1, 1, Path("/")).keys()
