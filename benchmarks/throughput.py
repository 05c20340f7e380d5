"""Training under ``cloudtrain run`` is as fast as under bare torchrun: nothing of ours is in the way of a step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import Row, in_turns, run
from benchmarks.subjects import cloudtrain, project, torchrun

PAIRS = 5


def rows() -> Iterator[Row]:
    """One row: samples/s of the same script with the same ranks, as it measures them itself between two barriers."""
    with project("charlm.py") as folder:
        result = folder / "result"

        def ours() -> float:
            run(cloudtrain("run", "job.yaml", "--isolation", "none", "--", "--result", str(result), cwd=folder))
            return _taken(result)

        def theirs() -> float:
            run(*torchrun(folder / "train.py", 2, 2, ["--result", str(result)]))
            return _taken(result)

        measured = in_turns({"torchrun": theirs, "cloudtrain": ours}, PAIRS, warm_up=False)
    yield Row.of(
        "throughput", "training on 2x2, `cloudtrain run` / torchrun with the same ranks",
        measured, "cloudtrain", "torchrun", unit="samples/s", bound=0.97, at_least=True,
    )  # fmt: skip


def _taken(result: Path) -> float:
    value = float(result.read_text(encoding="utf-8"))
    result.unlink()
    return value
