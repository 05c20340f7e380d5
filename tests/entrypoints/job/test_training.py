"""Trainings of real processes against a plain loop, against themselves at other world sizes, and against SIGTERM."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.entrypoints.job.ranks import TRAIN, Ranks, json_lines
from tests.entrypoints.job.scripts.train import Numbered, network


def steps_of(folder: Path, world: int) -> list[dict[str, Any]]:
    """Per step: what all ranks together trained on, in order of sample number, and their summed loss."""
    ranks = [json_lines(folder / f"steps-{rank}.jsonl") for rank in range(world)]
    assert len({len(rank) for rank in ranks}) == 1, "ranks differ in their number of steps"
    return [
        {
            "epoch": lines[0]["epoch"],
            "step": lines[0]["step"],
            "ids": sorted(number for line in lines for number in line["ids"]),
            "sum": sum(line["sum"] for line in lines),
        }
        for lines in zip(*ranks, strict=True)
    ]


def weights(folder: Path, rank: int = 0) -> dict[str, torch.Tensor]:
    saved = torch.load(folder / f"final-{rank}.pt", weights_only=True)["weights"]
    return {name.removeprefix("module."): value for name, value in saved.items()}


def plain_loop(batches: list[list[int]], length: int) -> tuple[list[float], nn.Module]:
    """Mean loss of each step of a single process that knows nothing of any of this, and the model it ends with."""
    torch.manual_seed(3)
    model, data = network(0.0), Numbered(length)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for index, numbers in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = 0.01 * 0.9 ** (index // 5)
        loss = nn.functional.mse_loss(model(data.inputs[numbers]), data.targets[numbers])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model


@pytest.mark.parametrize("world", [1, 2, 3, 4])
def test_any_world_size_trains_like_one_plain_process(ranks: Ranks, tmp_path: Path, world: int) -> None:
    # 43 samples in batches of 10: with 4 ranks shares of 3 3 2 2, and 1 1 1 0 in the last step of an epoch.
    ranks.run(TRAIN, "--batch", 10, world=world, folder=tmp_path).succeeded()
    steps = steps_of(tmp_path, world)
    assert [len(step["ids"]) for step in steps] == [10, 10, 10, 10, 3] * 2
    losses, model = plain_loop([step["ids"] for step in steps], 43)
    assert [step["sum"] / len(step["ids"]) for step in steps] == pytest.approx(losses, rel=2e-6)
    for rank in range(world):
        for name, value in model.state_dict().items():
            torch.testing.assert_close(weights(tmp_path, rank)[name], value, rtol=1e-5, atol=1e-6)


def test_batches_and_their_order_do_not_depend_on_the_world_size(ranks: Ranks, tmp_path: Path) -> None:
    seen = []
    for world in (1, 4):
        ranks.run(TRAIN, world=world, folder=tmp_path / str(world)).succeeded()
        seen.append([step["ids"] for step in steps_of(tmp_path / str(world), world)])
    assert seen[0] == seen[1]
    first, second = seen[0][:6], seen[0][6:]
    assert sorted(itertools.chain(*first)) == sorted(itertools.chain(*second)) == list(range(43))
    assert first != second


def test_every_rank_has_its_own_random_stream(ranks: Ranks, tmp_path: Path) -> None:
    ranks.run(TRAIN, "--epochs", 1, world=3, folder=tmp_path).succeeded()
    drawn = [torch.load(tmp_path / f"final-{rank}.pt", weights_only=True)["random"] for rank in range(3)]
    assert len({tuple(numbers.tolist()) for numbers in drawn}) == 3


def test_evaluation_counts_every_sample_once(ranks: Ranks, tmp_path: Path) -> None:
    ranks.run(TRAIN, "--length", 41, world=3, folder=tmp_path).succeeded()
    numbers = [(line["samples"], line["numbers"]) for line in json_lines(tmp_path / "evaluations.jsonl")]
    assert numbers == [(41, sum(range(41)))] * 2


# 43 samples in batches of 8 are 6 steps: within epoch 0, its last step, within epoch 1, and around an evaluation.
@pytest.mark.parametrize("stop", ["2", "6", "9", "evaluation-0", "start"])
def test_stopped_by_sigterm_and_resumed_is_bitwise_the_uninterrupted_run(
    ranks: Ranks, tmp_path: Path, stop: str
) -> None:
    options = ("--dropout", 0.3, "--workers", 2 if stop == "9" else 0)
    ranks.run(TRAIN, *options, world=2, folder=tmp_path / "whole").succeeded()
    stopped = ranks.run(TRAIN, *options, "--stop", stop, world=2, folder=tmp_path / "cut")
    assert stopped.codes == [143, 143], stopped.output
    assert len(list((tmp_path / "cut" / "checkpoints").iterdir())) == 1
    resumed = ranks.run(TRAIN, *options, world=2, folder=tmp_path / "cut").succeeded()
    assert "resumed at step" in resumed.outputs[0]
    assert steps_of(tmp_path / "cut", 2) == steps_of(tmp_path / "whole", 2)
    for rank in range(2):
        whole, cut = (torch.load(tmp_path / run / f"final-{rank}.pt", weights_only=True) for run in ("whole", "cut"))
        assert torch.equal(whole["random"], cut["random"])
        assert all(torch.equal(whole["weights"][name], cut["weights"][name]) for name in whole["weights"])
    evaluations = [json_lines(tmp_path / run / "evaluations.jsonl") for run in ("whole", "cut")]
    assert evaluations[0] == evaluations[1]


def test_resumed_at_other_world_sizes_no_sample_is_missed_or_repeated(ranks: Ranks, tmp_path: Path) -> None:
    steps = []
    for world, stop, code in ((4, "2", 143), (1, "5", 143), (3, "8", 143), (2, "", 0)):
        ended = ranks.run(TRAIN, "--stop", stop, world=world, folder=tmp_path)
        assert ended.codes == [code] * world, ended.output
        steps += steps_of(tmp_path, world)
        for file in tmp_path.glob("steps-*.jsonl"):
            file.unlink()
    assert [step["step"] for step in steps] == list(range(1, 13))
    for epoch in (0, 1):
        seen = [number for step in steps if step["epoch"] == epoch for number in step["ids"]]
        assert sorted(seen) == list(range(43))
    losses, model = plain_loop([step["ids"] for step in steps], 43)
    assert [step["sum"] / len(step["ids"]) for step in steps] == pytest.approx(losses, rel=2e-6)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(weights(tmp_path)[name], value, rtol=1e-5, atol=1e-6)
