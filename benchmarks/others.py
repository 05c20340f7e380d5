"""For comparison: the same hello script under bare torchrun, and with an interpreter per rank as on a cloud."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measuring import Row, in_turns, run, wall
from benchmarks.subjects import cloudtrain, project, python, torchrun

ROUNDS = 3


def rows() -> Iterator[Row]:
    """Rows without bounds."""
    with project("hello.py") as folder:
        script = folder / "train.py"
        subjects = {
            "torch": wall(python("import torch")),
            "torchrun, 1x2": lambda: run(*torchrun(script, 1, 2)).wall,
            "torchrun, 2x2": lambda: run(*torchrun(script, 2, 2)).wall,
            "cloudtrain run --engine agents, 2x2": wall(
                cloudtrain("run", "job.yaml", "--isolation", "none", "--engine", "agents", cwd=folder)
            ),
        }
        measured = in_turns(subjects, ROUNDS, warm_up=False)
    for name in list(subjects)[1:]:
        yield Row.of("others", f"hello under {name} / `import torch`", measured, name, "torch", unit="s")
