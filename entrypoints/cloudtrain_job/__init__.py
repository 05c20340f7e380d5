"""What a training script may use inside a job; a script needs none of it.

::

    import cloudtrain_job as ctj

    ctx = ctj.init()                                          # rank, device, process group, folders
    model = ctx.wrap(Net())                                   # on its device, in DDP where there are peers
    loader = ctj.loader(dataset, global_batch=256, seed=0)    # exact shards, the same batches at any world size
    state = ctj.Checkpointer(ctx, model=model, optimizer=optimizer, loader=loader)   # restores what is there

    for epoch in loader.epochs(10):
        for x, y in loader:
            loss = criterion(model(x.to(ctx.device)), y.to(ctx.device))    # a mean over this rank's samples
            optimizer.zero_grad()
            (loss * loader.weight).backward()                 # makes the mean over the global batch exact
            optimizer.step()
            state.step()                                      # saves when due; on SIGTERM all ranks save and exit 143
            ctj.log(step=state.steps, loss=loss, samples=loader.samples)
        result = ctj.evaluate(model, test_set, measure, state=state)       # every sample counted once
    ctj.finish()

It runs under ``cloudtrain run``, under plain ``torchrun`` and as ``python train.py`` (world size 1). Standard library
and torch only; importing the package imports neither torch nor any of its modules until a name is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudtrain_job.checkpoint import Checkpointer
    from cloudtrain_job.context import Context, current, finish, init
    from cloudtrain_job.errors import CheckpointError, JobError, LoaderError, ResumeRefused, TaskError, WorldError
    from cloudtrain_job.evaluation import Evaluation, evaluate
    from cloudtrain_job.loading import Loader, loader
    from cloudtrain_job.metrics import log
    from cloudtrain_job.task import Task

__all__ = [
    "CheckpointError",
    "Checkpointer",
    "Context",
    "Evaluation",
    "JobError",
    "Loader",
    "LoaderError",
    "ResumeRefused",
    "Task",
    "TaskError",
    "WorldError",
    "current",
    "evaluate",
    "finish",
    "init",
    "loader",
    "log",
]

# No module may be called like a public name: importing it would put the module in the name's place.
_HOMES = {
    "checkpoint": ("Checkpointer",),
    "context": ("Context", "current", "finish", "init"),
    "errors": ("CheckpointError", "JobError", "LoaderError", "ResumeRefused", "TaskError", "WorldError"),
    "evaluation": ("Evaluation", "evaluate"),
    "loading": ("Loader", "loader"),
    "metrics": ("log",),
    "task": ("Task",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import the module of a public name when it is first used."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
