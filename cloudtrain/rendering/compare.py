"""The requests of several clouds side by side: the same question in a row, a cloud's answer in each column."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from cloudtrain.spec.problems import JobFileError

if TYPE_CHECKING:
    from cloudtrain.providers.base import Request

# Question -> provider -> where its request has the answer.
_ASKED: Mapping[str, Mapping[str, str]] = {
    "name": {"sagemaker": "TrainingJobName", "vertex": "displayName", "azureml": "name"},
    "machine": {
        "sagemaker": "ResourceConfig.InstanceType",
        "vertex": "jobSpec.workerPoolSpecs.0.machineSpec.machineType",
        "azureml": "resources.instance_type",
    },
    "accelerator": {
        "vertex": "jobSpec.workerPoolSpecs.0.machineSpec.acceleratorType",
    },
    "cluster": {"azureml": "compute"},
    "disk, GB": {
        "sagemaker": "ResourceConfig.VolumeSizeInGB",
        "vertex": "jobSpec.workerPoolSpecs.0.diskSpec.bootDiskSizeGb",
    },
    "shared memory": {"azureml": "resources.shm_size"},
    "spot": {
        "sagemaker": "EnableManagedSpotTraining",
        "vertex": "jobSpec.scheduling.strategy",
        "azureml": "queue_settings.job_tier",
    },
    "time limit": {
        "sagemaker": "StoppingCondition.MaxRuntimeInSeconds",
        "vertex": "jobSpec.scheduling.timeout",
        "azureml": "limits.timeout",
    },
}

# The same for what is too long for a column.
_LONG: Mapping[str, Mapping[str, str]] = {
    "image": {
        "sagemaker": "AlgorithmSpecification.TrainingImage",
        "vertex": "jobSpec.workerPoolSpecs.0.containerSpec.imageUri",
        "azureml": "environment",
    },
    "checkpoints": {
        "sagemaker": "CheckpointConfig.S3Uri",
        "vertex": "jobSpec.workerPoolSpecs.0.containerSpec.env.CLOUDTRAIN_CHECKPOINT_DIR",
        "azureml": "outputs.cloudtrain_checkpoint.path",
    },
}


class Column(NamedTuple):
    """What became of the job with one provider."""

    provider: str
    request: Request | None
    error: JobFileError | None


def side_by_side(columns: list[Column], width: int = 120) -> str:
    """A table, then what was chosen and why, then what to know, then what is refused."""
    shown = [column for column in columns if column.request]
    lines = list(_table(shown, width)) if shown else []
    for column in columns:
        lines += ["", f"{column.provider}:"]
        lines += [f"  {question:<11}  {answer}" for question, answer in _long_answers(column)]
        lines += _told(column, width)
    return "\n".join(lines).strip("\n")


def _table(columns: list[Column], width: int) -> Iterator[str]:
    label = max(map(len, _ASKED)) + 2
    room = max(20, (width - label) // len(columns) - 2)
    yield " " * label + "".join(f"{column.provider:<{room + 2}}" for column in columns)
    for question, places in _ASKED.items():
        told = _SAID.get(question, str)
        answers = [told(answer) if (answer := _answer(column, places)) else "" for column in columns]
        if any(answers):
            yield from _row(question, answers, label, room)


def _row(question: str, answers: list[str], label: int, room: int) -> Iterator[str]:
    cells = [textwrap.wrap(answer or "-", room, break_on_hyphens=False) for answer in answers]
    for number in range(max(map(len, cells))):
        parts = [cell[number] if number < len(cell) else "" for cell in cells]
        head = question if number == 0 else ""
        yield f"{head:<{label}}{''.join(f'{part:<{room + 2}}' for part in parts)}".rstrip()


def _long_answers(column: Column) -> Iterator[tuple[str, str]]:
    for question, places in _LONG.items():
        if answer := _answer(column, places):
            yield question, answer


def _answer(column: Column, places: Mapping[str, str]) -> str:
    place = places.get(column.provider, "")
    found: Any = column.request.native if column.request and place else None
    for step in place.split("."):
        found = _below(found, step)
    if isinstance(found, Mapping):
        return str(found.get("image", found))
    return "" if found is None else str(found)


def _duration(seconds: str) -> str:
    """``21600s`` as ``6h``."""
    text = seconds.removesuffix("s")
    if not text.isdecimal():
        return seconds
    number = int(text)
    unit, size = next(pair for pair in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)) if number % pair[1] == 0)
    return f"{number // size}{unit}"


def _yes(_: str) -> str:
    return "yes"


_SAID = {"time limit": _duration, "spot": _yes}
"""Question -> how an answer is said, the same for all clouds."""


def _below(value: Any, step: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(step)
    if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
        return value[int(step)]
    if isinstance(value, list):  # Vertex's variables: a list of name and value
        return next(
            (item.get("value") for item in value if isinstance(item, Mapping) and item.get("name") == step), None
        )
    return None


def _told(column: Column, width: int) -> Iterator[str]:
    if column.error:
        for problem in column.error.problems:
            yield from _wrapped("refused  ", str(problem), width)
        return
    if column.request:
        for choice in column.request.chosen:
            yield from _wrapped("chose    ", f"{choice.field}: {choice.value} ({choice.reason})", width)
        for note in column.request.notes:
            yield from _wrapped("note     ", note, width)
        if not column.request.chosen and not column.request.notes:
            yield "  as the job says"


def _wrapped(head: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=f"  {head}", subsequent_indent=" " * (len(head) + 2), break_on_hyphens=False,
        break_long_words=False,
    )  # fmt: skip
