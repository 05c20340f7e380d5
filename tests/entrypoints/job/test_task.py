"""``train_ddp.py``: what it takes, what it leaves, and what it says to a task that is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.entrypoints.job.ranks import ENTRYPOINTS, Ended, Ranks, json_lines

TRAIN_DDP = ENTRYPOINTS / "train_ddp.py"
TASK = """
from __future__ import annotations
from pathlib import Path
from typing import List, Literal, Optional
import torch, cloudtrain_job as ctj
from torch.utils.data import TensorDataset
from neighbour import SLOPE

class Line(ctj.Task):
    def __init__(self, start: float, lr: float = 0.1, layers: List[int] = [1], bias: bool = True, {extra}
                 kind: Literal["sgd", "adam"] = "sgd", where: Optional[Path] = None, big_name: str = "x"):
        self.start, self.lr, self.bias = start, lr, bias
        print("options", start, lr, layers, bias, kind, where, big_name)

    def data(self, folders):
        x = torch.arange(20.0)[:, None] / 20
        return TensorDataset(x, SLOPE * x), TensorDataset(x[:7], SLOPE * x[:7])

    def model(self):
        model = torch.nn.Linear(1, 1, bias=self.bias)
        torch.nn.init.constant_(model.weight, self.start)
        return model

    def loss(self, model, batch):
        x, y = batch
        return (model(x) - y).square().mean()

    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=self.lr)

class NoModel(ctj.Task):
    def data(self, folders):
        return None, None
    def optimizer(self, model):
        return None

class NotATask:
    pass
"""


@pytest.fixture
def task(tmp_path: Path) -> Path:
    (tmp_path / "line.py").write_text(TASK.replace("{extra}", ""))
    (tmp_path / "neighbour.py").write_text("SLOPE = 2\n")
    return tmp_path


def train(ranks: Ranks, folder: Path, *argv: object, world: int = 1) -> Ended:
    return ranks.run(TRAIN_DDP, *argv, world=world, folder=folder)


def test_a_task_is_trained_measured_and_kept(ranks: Ranks, task: Path) -> None:
    options = ("--task", "line.py:Line", "--start", 1, "--epochs", 30, "--global-batch", 5, "--log-every", 10)
    ended = train(ranks, task, *options, world=3).succeeded()
    told = ended.outputs[0].splitlines()
    assert told[1].startswith("epoch 1/30  step 4  loss 0.")
    assert told[-2].startswith("test loss: 0.00") and told[-2].endswith(" (mean of 7, each counted once)")
    assert told[-1] == f"model: {task / 'model' / 'model.pt'}"
    weights = torch.load(task / "model" / "model.pt", weights_only=True)
    assert weights["weight"].item() == pytest.approx(2.0, abs=0.3)
    about = json.loads((task / "model" / "model.json").read_text())
    assert (about["step"], about["samples"], about["test_samples"]) == (120, 600, 7)
    assert about["options"]["start"] == 1.0
    lines = json_lines(task / "metrics" / "rank-0.jsonl")
    assert [line["step"] for line in lines if "mean_loss" in line] == list(range(10, 121, 10))
    assert lines[-1]["final"] is True
    assert lines[-1]["test_loss"] == pytest.approx(float(told[-2].split()[2]), abs=1e-4)
    others = json_lines(task / "metrics" / "rank-2.jsonl")
    assert [line["mean_loss"] for line in others] == [line["mean_loss"] for line in lines if "mean_loss" in line]


def test_a_finished_training_started_again_only_reports(ranks: Ranks, task: Path) -> None:
    options = ("--task", "line.py:Line", "--start", 1, "--epochs", 2)
    first, again = (train(ranks, task, *options, world=2).succeeded().outputs[0] for _ in range(2))
    assert "resumed at step 2" in again
    assert "epoch" not in again
    assert first.splitlines()[-2:] == again.splitlines()[-2:]
    assert [path.name for path in (task / "checkpoints").iterdir()] == ["step-000000002"]


def test_options_of_the_task_arrive_typed(ranks: Ranks, task: Path) -> None:
    argv = ("--start", "1e0", "--layers", 3, 4, "--no-bias", "--kind", "adam", "--where", "a b", "--big_name", "007")
    told = train(ranks, task, "--task", "line.py:Line", *argv).succeeded().output
    assert told.startswith("options 1.0 0.1 [3, 4] False adam a b 007\n")


def test_help_lists_both_kinds_of_options(ranks: Ranks, task: Path) -> None:
    told = train(ranks, task, "--task", "line.py:Line", "--help").succeeded().output
    assert "--global-batch" in told and "options of Line:" in told and "--big-name" in told


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ((), "the following arguments are required: --task"),
        (("--task", "line.py"), "write it as FILE:CLASS, such as tasks.py:Digits"),
        (("--task", "lime.py:Line"), "there is no file lime.py in "),
        (("--task", "line.py:Lime"), "line.py has no class Lime; did you mean Line?"),
        (("--task", "line.py:Zzz"), "line.py has no class Zzz; its tasks are: Line, NoModel"),
        (("--task", "line.py:NotATask"), "NotATask does not derive from cloudtrain_job.Task"),
        (("--task", "line.py:NoModel"), "NoModel lacks the method(s) loss, model"),
        (("--task", "line.py:Line"), "the following arguments are required: --start"),
        (("--task", "line.py:Line", "--start", "1", "--epoch", "3"), "unknown option --epoch; did you mean --epochs?"),
        (
            ("--task", "line.py:Line", "--start", "1", "--big-nam=3"),
            "unknown option --big-nam; did you mean --big-name?",
        ),
        (("--task", "line.py:Line", "--start", "1", "more"), "unexpected argument 'more'"),
        (("--task", "line.py:Line", "--start", "one"), "argument --start: invalid float value: 'one'"),
        (("--task", "line.py:Line", "--start", "1", "--epochs", "0"), "argument --epochs: 0 is less than 1"),
        (("--task", "line.py:Line", "--start", "1", "--checkpoint-every", "soon"), "argument --checkpoint-every:"),
    ],
)
def test_a_wrong_command_line_is_one_paragraph_and_exit_code_2(
    ranks: Ranks, task: Path, argv: tuple[str, ...], message: str
) -> None:
    ended = train(ranks, task, *argv)
    assert ended.codes == [2], ended.output
    assert message in ended.output
    assert "Traceback" not in ended.output


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("class Line(:\n", "line.py:1: invalid syntax"),
        ("import nowhere_to_be_found\n", "line.py imports nowhere_to_be_found, which is not installed here"),
        (TASK.replace("{extra}", "epochs: int = 3,"), "the name epochs is taken by --epochs of every task"),
        (TASK.replace("{extra}", "untyped = 3,"), "untyped needs a type, such as untyped: float = 0.1"),
        (TASK.replace("{extra}", "odd: dict = {},"), "odd is a <class 'dict'>; an option is a str, int, float"),
        (TASK.replace("{extra}", "odd: Unknown = 1,"), "a type cannot be understood here: name 'Unknown'"),
        (
            TASK.replace("{extra}", "").replace("x = torch", "x = folders['training'] or torch"),
            "this job has no data channel 'training'; it has none",
        ),
    ],
)
def test_a_wrong_task_is_one_paragraph_and_exit_code_2(ranks: Ranks, task: Path, file: str, message: str) -> None:
    (task / "line.py").write_text(file)
    ended = train(ranks, task, "--task", "line.py:Line", "--start", 1, world=2)
    assert ended.codes == [2, 2], ended.output
    assert message in ended.outputs[0]
    assert "Traceback" not in ended.output


def test_an_error_of_the_task_itself_keeps_its_traceback(ranks: Ranks, task: Path) -> None:
    (task / "line.py").write_text(TASK.replace("{extra}", "").replace("x, y = batch", "x, y, z = batch"))
    ended = train(ranks, task, "--task", "line.py:Line", "--start", 1)
    assert ended.codes == [1]
    assert "x, y, z = batch" in ended.output
    assert "ValueError: not enough values to unpack" in ended.output


def test_preempted_between_steps_and_resumed(ranks: Ranks, task: Path) -> None:
    stop = "import os, signal\n_steps = 0\n"
    body = (
        "        x, y = batch\n        global _steps\n        _steps += torch.is_grad_enabled()\n"
        "        if _steps == 3 and os.environ.get('STOP'):\n            os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    source = TASK.replace("{extra}", "").replace("        x, y = batch\n", body)
    (task / "line.py").write_text(source.replace("import torch, cloud", stop + "import torch, cloud"))
    options = ("--task", "line.py:Line", "--start", 1, "--epochs", 3, "--global-batch", 10)
    whole = train(ranks, task, *options, world=2).succeeded()
    (task / "checkpoints").rename(task / "done")
    cut = ranks.run(TRAIN_DDP, *options, world=2, folder=task, env={"STOP": "1"})
    assert cut.codes == [143, 143]
    assert "told to stop: step 3 is saved in" in cut.outputs[0]
    again = train(ranks, task, *options, world=2).succeeded()
    assert again.outputs[0].splitlines()[-2:] == whole.outputs[0].splitlines()[-2:]
