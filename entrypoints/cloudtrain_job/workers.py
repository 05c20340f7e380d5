"""Processes that read data ahead: they outlive a SIGTERM to the group, and go when the training goes."""

from __future__ import annotations

import atexit
import functools
import signal
import weakref
from collections.abc import Iterator
from typing import Any, Callable

import torch
from torch.utils.data import DataLoader, Dataset

_running: weakref.WeakSet[Any] = weakref.WeakSet()


def open_data(
    dataset: Dataset[Any],
    plan: Any,
    *,
    num_workers: int,
    random: torch.Generator,
    pin_memory: bool,
    worker_init_fn: Callable[[int], None] | None = None,
    **options: Any,
) -> DataLoader[Any]:
    """A DataLoader over the index lists of ``plan``, whose workers ignore SIGTERM and SIGINT.

    ``random`` gives the workers their seeds: without it torch draws from the global stream each time data is opened,
    and a resumed run would no longer draw what the uninterrupted one does.
    """
    return DataLoader(
        dataset,
        batch_sampler=plan,
        num_workers=num_workers,
        persistent_workers=num_workers > 0,
        generator=random,
        pin_memory=pin_memory,
        worker_init_fn=functools.partial(_start_worker, worker_init_fn),
        **options,
    )


def read(data: DataLoader[Any]) -> Iterator[Any]:
    """The batches of ``data``."""
    iterator = iter(data)
    _running.add(iterator)
    return iterator


def close_all() -> None:
    """Stop the workers of every reader. At exit multiprocessing would SIGTERM them, which they ignore, and wait."""
    for iterator in list(_running):
        _running.discard(iterator)
        # Not public, but torch has no public way to stop workers; without it they are simply killed.
        getattr(iterator, "_shutdown_workers", int)()
        for worker in getattr(iterator, "_workers", ()):
            if worker.is_alive():
                worker.kill()


# Registered after torch.utils.data and multiprocessing were imported, and so run before their own exit handlers.
atexit.register(close_all)


def _start_worker(user: Callable[[int], None] | None, worker: int) -> None:
    # A platform or launcher signals the whole process group; were the workers to die first, the training process could
    # not finish its step and save.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    if user is not None:
        user(worker)
