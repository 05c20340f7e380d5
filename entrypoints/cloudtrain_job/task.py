"""A ``task:`` job gives what to train; ``train_ddp.py`` is the loop."""

from __future__ import annotations

import importlib.util
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset

from cloudtrain_job.errors import TaskError
from cloudtrain_job.folders import Folders


class Task(ABC):
    """What to train. Derive from it, give four methods, and name the class in the job file: ``task: tasks.py:Digits``.

    The options of ``__init__`` are the options of the job: ``def __init__(self, lr: float = 0.01, layers: int = 2)``
    makes ``--lr`` and ``--layers``, or ``args: {lr: 0.02}`` in the job file. They are keyword parameters with a type:
    str, int, float, bool, Path, Optional or a list of one of them. One without a default must be given.

    The order is ``__init__``, ``data``, ``model``, ``optimizer``, ``schedule``; all ranks make the same calls.
    """

    @abstractmethod
    def data(self, folders: Folders) -> tuple[Dataset[Any], Dataset[Any] | None]:
        """The training set and the test set (or None). ``folders["train"]`` is the data channel ``train``."""

    @abstractmethod
    def model(self) -> nn.Module:
        """The model, on the CPU and unwrapped. Random numbers are the same on all ranks here."""

    @abstractmethod
    def loss(self, model: nn.Module, batch: Any) -> torch.Tensor:
        """The mean loss over the samples of ``batch``, which is on the model's device."""

    @abstractmethod
    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """The optimizer of the bare ``model``, on its device. Do not scale the learning rate by the world size."""

    def schedule(self, optimizer: torch.optim.Optimizer, steps: int) -> torch.optim.lr_scheduler.LRScheduler | None:
        """A learning-rate schedule, stepped after each of ``steps`` optimizer steps. None by default."""
        del optimizer, steps  # for those who override it
        return None

    def measure(self, model: nn.Module, batch: Any) -> Mapping[str, Any]:
        """What to report about the test set: **sums over the samples of the batch**, by name. The loss by default.

        ``accuracy`` is shown in per cent: ``{"accuracy": (model(x).argmax(1) == y).sum()}``.
        """
        return {"loss": self.loss(model, batch) * samples_in(batch)}


def samples_in(batch: Any) -> int:
    """Samples of a batch: the first dimension of its first tensor. Raises TaskError if there is none."""
    if isinstance(batch, torch.Tensor) and batch.dim() > 0:
        return batch.shape[0]
    parts = list(batch.values()) if isinstance(batch, Mapping) else batch if isinstance(batch, (list, tuple)) else []
    if not parts:
        raise TaskError(
            f"cannot count the samples of a batch that is a {type(batch).__name__}: give a measure() method"
        )
    return samples_in(parts[0])


def load_task(reference: str) -> type[Task]:
    """The class that ``FILE:NAME`` names, with FILE relative to the current folder.

    Raises TaskError for a file or class that is not there, a file that Python cannot read, and a class that is not a
    complete Task. Any other error while the file is imported is the file's own and is left alone.
    """
    file, colon, name = reference.rpartition(":")
    if not colon or not file or not name.isidentifier():
        raise TaskError(f"--task {reference}: write it as FILE:CLASS, such as tasks.py:Digits")
    found = getattr(_import(Path(file)), name, None)
    if found is None:
        raise TaskError(f"--task {reference}: {file} has no class {name}{_others(file, name)}")
    if not (isinstance(found, type) and issubclass(found, Task)):
        raise TaskError(f"--task {reference}: {name} does not derive from cloudtrain_job.Task")
    missing = sorted(getattr(found, "__abstractmethods__", ()))
    if missing:
        raise TaskError(f"--task {reference}: {name} lacks the method(s) {', '.join(missing)}")
    return found


def _import(file: Path) -> ModuleType:
    if not file.is_file():
        raise TaskError(f"--task: there is no file {file} in {Path.cwd()}")
    name = file.stem
    # Data workers that are spawned import it by name, and it may import its neighbours.
    sys.path.insert(0, str(file.resolve().parent))
    spec = importlib.util.spec_from_file_location(name, file.resolve())
    if spec is None or spec.loader is None:
        raise TaskError(f"--task: {file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise TaskError(f"--task: {error.filename}:{error.lineno}: {error.msg}") from None
    except ModuleNotFoundError as error:
        raise TaskError(f"--task: {file} imports {error.name}, which is not installed here") from None
    return module


def _others(file: str, name: str) -> str:
    module = sys.modules[Path(file).stem]
    tasks = [key for key, value in vars(module).items() if isinstance(value, type) and issubclass(value, Task)]
    tasks = [key for key in tasks if key != "Task"]
    near = get_close_matches(name, tasks, n=1)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; its tasks are: {', '.join(tasks)}" if tasks else ", nor any other that derives from cloudtrain_job.Task"
