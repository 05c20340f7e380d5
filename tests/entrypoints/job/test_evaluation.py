from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.entrypoints.job.ranks import Ranks

PROGRAM = """
import json, sys
import torch, cloudtrain_job as ctj
from torch.utils.data import TensorDataset

length, batch, workers = map(int, sys.argv[1:])
ctx = ctj.init()
model = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.BatchNorm1d(1))
model[0].eval()
wrapped = ctx.wrap(model)
data = TensorDataset(torch.arange(length, dtype=torch.float32)[:, None])
grads = []

def measure(bare, batch):
    assert bare is model and not bare.training
    grads.append(bare(batch[0]).requires_grad)
    return {"numbers": batch[0].sum(), "squares": (batch[0] ** 2).sum()}

result = ctj.evaluate(wrapped, data, measure, batch_size=batch, num_workers=workers)
training = [part.training for part in model.modules()]
print(json.dumps([result.samples, result.sums, result.means["numbers"], any(grads), training]))
"""


# 10 samples on 3 ranks are 4 3 3; in batches of 3 that is 2 1 1 rounds. 2 samples on 3 ranks leave one without any.
@pytest.mark.parametrize(
    ("world", "length", "batch", "workers"), [(1, 10, 4, 0), (3, 10, 3, 0), (3, 2, 8, 0), (2, 9, 2, 2)]
)
def test_every_sample_counts_once_on_every_rank(
    ranks: Ranks, tmp_path: Path, world: int, length: int, batch: int, workers: int
) -> None:
    ended = ranks.code(PROGRAM, length, batch, workers, world=world, folder=tmp_path).succeeded()
    numbers = list(range(length))
    sums = {"numbers": sum(numbers), "squares": sum(number**2 for number in numbers)}
    for output in ended.outputs:
        assert json.loads(output) == [length, sums, sum(numbers) / length, False, [True, False, True]]
