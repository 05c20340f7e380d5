from __future__ import annotations

from pathlib import Path

from tests.entrypoints.job.ranks import Ranks, json_lines

PROGRAM = """
import numpy, os, torch, cloudtrain_job as ctj
for step in range(2):
    ctj.log(step=step, loss=torch.tensor(0.5), rate=numpy.float32(0.25), count=numpy.int64(3), note="a\\nb", none=None)
ctj.log(loss=float("nan"), high=float("inf"), low=-float("inf"), tensor=torch.tensor(float("nan")), final=True)
for wrong in ({"loss": torch.ones(2)}, {"loss": [1.0]}, {"rank": 1}):
    try:
        ctj.log(**wrong)
    except TypeError as error:
        print(error)
"""


def test_lines_of_each_rank(ranks: Ranks, tmp_path: Path) -> None:
    ended = ranks.code(PROGRAM, world=2, folder=tmp_path).succeeded()
    for rank in range(2):
        lines = json_lines(tmp_path / "metrics" / f"rank-{rank}.jsonl")
        assert [line.pop("rank") for line in lines] == [rank] * 3
        times = [line.pop("time") for line in lines]
        assert times == sorted(times)
        values = {"loss": 0.5, "rate": 0.25, "count": 3, "note": "a\nb", "none": None}
        assert lines[:2] == [{"step": 0, **values}, {"step": 1, **values}]
        assert lines[2] == {"loss": "nan", "high": "inf", "low": "-inf", "tensor": "nan", "final": True}
        assert ended.outputs[rank].splitlines() == [
            "log(loss=...): a Tensor is not one number, text or None",
            "log(loss=...): a list is not one number, text or None",
            "log() sets rank itself",
        ]


def test_a_full_disk_loses_metrics_not_the_training(ranks: Ranks, tmp_path: Path) -> None:
    program = (
        "import resource, signal, cloudtrain_job as ctj\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "ctj.log(step=0)\n"
        "limits = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))\n"  # the next line ends in its middle
        "for step in (1, 2, 3):\n"
        "    ctj.log(step=step)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, limits)\n"
        "ctj.log(step=4)\n"
    )
    ended = ranks.code(program, world=1, folder=tmp_path).succeeded()
    assert ended.output.count("metrics are being lost") == 1
    lines = (tmp_path / "metrics" / "rank-0.jsonl").read_text().splitlines()
    assert '"step": 0' in lines[0]
    assert '"step": 4' in lines[-1]
