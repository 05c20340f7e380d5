"""A run of four ranks on two simulated nodes starts, meets and ends in little more than one import of torch."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measuring import Row, in_turns, wall
from benchmarks.subjects import cloudtrain, project, python

ROUNDS = 9
BOUNDS = {"none": 1.5, "netns": 1.8}


def rows() -> Iterator[Row]:
    """A row per isolation. The script joins the process group, reduces one number and ends."""
    with project("hello.py") as folder:
        subjects = {"torch": wall(python("import torch"))}
        for isolation in BOUNDS:
            subjects[isolation] = wall(cloudtrain("run", "job.yaml", "--isolation", isolation, cwd=folder))
        measured = in_turns(subjects, ROUNDS)
    for isolation, bound in BOUNDS.items():
        yield Row.of(
            f"start-{isolation}", f"hello on 2x2, `--isolation {isolation}` / `import torch`",
            measured, isolation, "torch", unit="s", bound=bound,
        )  # fmt: skip
