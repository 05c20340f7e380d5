"""The table of several clouds: the same question in a row, each cloud's own answer below its name."""

from __future__ import annotations

import pytest

from cloudtrain.providers import registry
from cloudtrain.rendering.compare import Column, side_by_side
from cloudtrain.spec.problems import JobFileError
from tests.providers.contexts import PROVIDERS, context, job_of

JOB = """
name: j
entry: t.py
environment: {image: {sagemaker: own/sm:1, vertex: own/vx:1, azureml: own/az:1}}
resources: {nodes: 2, accelerator: A100-80GB, accelerators_per_node: 8}
spot: {enabled: true}
limits: {runtime: 6h}
"""


def columns(text: str) -> list[Column]:
    made, job = [], job_of(text)
    for provider in PROVIDERS:
        try:
            made.append(Column(provider, registry.translate(job, context(job, provider)), None))
        except JobFileError as error:
            made.append(Column(provider, None, error))
    return made


def answers(shown: str, question: str) -> list[str]:
    """The cells of a row of one line; cells are two blanks apart, a missing answer is a hyphen."""
    (line,) = [line for line in shown.splitlines() if line.startswith(f"{question}  ")]
    return [cell.strip() for cell in line.removeprefix(question).split("  ") if cell.strip()]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("machine", ["ml.p4de.24xlarge", "a2-ultragpu-8g", "Standard_ND96amsr_A100_v4"]),
        ("accelerator", ["-", "NVIDIA_A100_80GB", "-"]),
        ("spot", ["yes", "yes", "yes"]),
        ("time limit", ["6h", "6h", "6h"]),
        ("shared memory", ["-", "-", "950g"]),
    ],
)
def test_answers_stand_side_by_side(question: str, expected: list[str]) -> None:
    assert answers(side_by_side(columns(JOB), width=160), question) == expected


def test_what_is_long_is_one_piece_below_its_clouds_name() -> None:
    below = side_by_side(columns(JOB), width=160).partition("\nvertex:\n")[2].splitlines()
    assert below[0].split() == ["image", "own/vx:1"]
    run_id = columns(JOB)[1].request.spec["run_id"]  # type: ignore[union-attr]
    assert below[1].split() == ["checkpoints", f"gs://my-vertex-bucket/cloudtrain/runs/{run_id}/checkpoints/"]


def test_no_line_is_wider_than_asked_for_but_words_stay_whole() -> None:
    shown = side_by_side(columns(JOB), width=100)
    assert all(len(line) <= 100 or " " not in line.strip().partition("  ")[2] for line in shown.splitlines())


def test_a_cloud_that_refuses_has_no_column_and_says_why() -> None:
    shown = side_by_side(columns(JOB.replace("resources: {", "resources: {shm_gib: 8, ")), width=160)
    assert answers(shown, "machine") == ["Standard_ND96amsr_A100_v4"]
    assert shown.count("  refused  ") == 2
    assert "refused  job.yaml:5:22: resources.shm_gib:" in shown
