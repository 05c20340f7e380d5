"""Scripts that others wrote run as they are. They come out of the packages that carry them; none is copied here.

Accelerate ships the scripts its own test suite launches, which check shards, gradients and synchronisation of all
processes by themselves. Lightning ships demo models but no script, so two lines hand one to its Trainer.
"""

from __future__ import annotations

import pytest

from tests.local.project import Project

SHAPES = [(2, 1, "netns"), (1, 2, "none")]

TRAIN_A_LIGHTNING_DEMO = """
import os
from lightning.pytorch import Trainer
from lightning.pytorch.demos.boring_classes import BoringModel
Trainer(
    accelerator="cpu", devices=int(os.environ["LOCAL_WORLD_SIZE"]), num_nodes=int(os.environ["CLOUDTRAIN_NODES"]),
    max_steps=4, limit_val_batches=2, log_every_n_steps=1,
).fit(BoringModel())
"""


def _module(project: Project, module: str, framework: str) -> None:
    project.write("job.yaml", f"name: public\nmodule: {module}\nframework: {framework}\n")


def _shape(nodes: int, processes: int, isolation: str) -> list[str]:
    return ["--nodes", str(nodes), "--processes", str(processes), "--isolation", isolation]


@pytest.mark.parametrize(("nodes", "processes", "isolation"), SHAPES)
@pytest.mark.parametrize(
    ("script", "says"),
    [("test_script", "Num processes: 2"), ("test_sync", "gradient accumulation with optimizer and scheduler")],
)
def test_scripts_of_accelerate(
    project: Project, script: str, says: str, nodes: int, processes: int, isolation: str
) -> None:
    _module(project, f"accelerate.test_utils.scripts.{script}", "accelerate")
    result = project.run(*_shape(nodes, processes, isolation))
    assert result.code == 0, result.out + result.err
    assert says.encode() in result.log(0)


@pytest.mark.parametrize(("nodes", "processes", "isolation"), SHAPES)
def test_a_demo_of_lightning(project: Project, nodes: int, processes: int, isolation: str) -> None:
    project.job(TRAIN_A_LIGHTNING_DEMO, extra="framework: lightning\n")
    result = project.run(*_shape(nodes, processes, isolation))
    assert result.code == 0, result.out + result.err
    for rank in range(2):
        assert f"GLOBAL_RANK: {rank}, MEMBER: {rank + 1}/2".encode() in result.log(rank)
    assert b"`Trainer.fit` stopped: `max_steps=4` reached." in result.log(0)
