"""``Checkpointer``: verified restore, atomic save, and one agreed save on SIGTERM."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, Protocol

import torch
from torch import nn

from cloudtrain_job import rng
from cloudtrain_job.context import Context
from cloudtrain_job.durations import seconds
from cloudtrain_job.errors import CheckpointError, ResumeRefused
from cloudtrain_job.plain import plain
from cloudtrain_job.preemption import PREEMPTED, StopRequest
from cloudtrain_job.store import STATE, Damaged, Saved, Store, verify
from cloudtrain_job.unwrap import unwrap
from cloudtrain_job.workers import close_all


class Stateful(Protocol):
    """Anything whose state can be taken and put back: optimizers, schedulers, loaders, scalers, averages."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any: ...


class Checkpointer:
    """The training state of all ranks, on disk in ``ctx.checkpoint_dir``.

    Making one restores the newest sound checkpoint, if there is any: model, optimizer, scheduler, place in the data,
    random streams, ``steps``. So make it last before the loop. ``resumed`` says whether it did. Then call ``step()``
    once after every optimizer step.

    Args:
        ctx: what ``init()`` gave.
        model: wrapped or not; saved without wrappers, so it restores at any world size.
        optimizer, scheduler: what has to go on where it was.
        loader: a ``ctj.loader()``; its place in the data is saved.
        extra: anything else with ``state_dict`` and ``load_state_dict``, by name.
        keep: how many checkpoints stay, at least 1. Default: CLOUDTRAIN_CHECKPOINT_KEEP, else 3.
        every: time between saves, ``"90s" "10m" "6h"`` or seconds. Default: CLOUDTRAIN_CHECKPOINT_EVERY, else 10m.
        every_steps: save after that many steps instead.

    One folder is shared by all ranks: rank 0 writes. At another world size everything is restored but the random
    streams of the ranks, which are then made anew from (seed, step, rank).

    SIGTERM is taken from here on. It sets a flag, which all ranks agree on at the next ``step()`` or ``check()``: all
    save that same step and exit with code 143. A rank that a peer left mid-step does not save; then the last periodic
    checkpoint counts.

    Raises CheckpointError if checkpoints exist and none is sound, ResumeRefused if a sound one belongs to another
    model or other data.
    """

    def __init__(
        self,
        ctx: Context,
        *,
        model: nn.Module,
        optimizer: torch.optim.Optimizer | None = None,
        loader: Stateful | None = None,
        scheduler: Stateful | None = None,
        extra: Mapping[str, Stateful] | None = None,
        keep: int | None = None,
        every: str | float | None = None,
        every_steps: int | None = None,
    ) -> None:
        self.steps = 0
        self.resumed = False
        self._ctx = ctx
        self._model = unwrap(model)
        given = {"optimizer": optimizer, "scheduler": scheduler, "loader": loader, **(extra or {})}
        self._parts: dict[str, Stateful] = {name: part for name, part in given.items() if part is not None}
        self._every_steps = every_steps
        self._every = seconds(every if every is not None else os.environ.get("CLOUDTRAIN_CHECKPOINT_EVERY") or "10m")
        keep = keep if keep is not None else int(os.environ.get("CLOUDTRAIN_CHECKPOINT_KEEP") or 3)
        self._store = Store(ctx.checkpoint_dir, keep)
        self._last: tuple[Path, Any] | None = None
        self._stop = StopRequest()
        self._stop.listen()
        self._restore()
        self._saved_at = time.monotonic()

    def step(self) -> None:
        """A step is done: save if one is due, or save and leave (SystemExit 143) if any rank was told to stop.

        All ranks must call it after every optimizer step. It costs one tiny all-reduce.
        """
        self.steps += 1
        stop, due = self._ctx.any(self._stop.made, self._due())
        if stop:
            self._leave()
        if due:
            self.save()

    def check(self) -> None:
        """Save and leave (SystemExit 143) if any rank was told to stop; for long work between steps, by all ranks."""
        if self._ctx.any(self._stop.made)[0]:
            self._leave()

    def save(self, *, again: bool = True) -> Path:
        """Save now; all ranks must call it. Returns the folder of the checkpoint once it is durable.

        With ``again=False`` nothing is written if this very place in the training was saved or restored before.
        Raises CheckpointError, on all ranks, if it could not be written.
        """
        if not again and self._last is not None and self._last[1] == self._place():
            return self._last[0]
        state = self._state(self._ctx.gather(rng.capture(self._ctx.device)))
        path, problem = self._ctx.broadcast(self._write(state) if self._ctx.is_main else None)
        if problem is not None:
            raise CheckpointError(problem)
        self._saved_at = time.monotonic()
        self._last = (Path(path), self._place())
        return Path(path)

    def _due(self) -> bool:
        if self._every_steps is not None:
            return self.steps % self._every_steps == 0
        # Clocks differ between ranks, so one decides.
        return self._ctx.is_main and time.monotonic() - self._saved_at >= self._every

    def _leave(self) -> NoReturn:
        # A job told to stop again and again before its first step must not fill the folder with copies of one state.
        path = self.save(again=False)
        self._ctx.say(f"told to stop: step {self.steps} is saved in {path}, leaving with exit code {PREEMPTED}")
        close_all()
        raise SystemExit(PREEMPTED)

    def _place(self) -> Any:
        loader = self._parts.get("loader")
        return self.steps, loader and loader.state_dict()

    def _state(self, streams: list[Any]) -> dict[str, Any]:
        parts = {name: part.state_dict() for name, part in self._parts.items()}
        return {"steps": self.steps, "model": self._model.state_dict(), **parts, "rng": streams}

    def _write(self, state: dict[str, Any]) -> tuple[str, str | None]:
        """Where it was written, and what went wrong, for the other ranks to hear: they wait for either."""
        facts = {"step": self.steps, "world_size": self._ctx.world_size, "torch": str(torch.__version__)}
        facts["written"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        try:
            safe = {name: plain(value, name) for name, value in state.items()}
            saved = self._store.publish(self.steps, lambda file: torch.save(safe, file), facts)
        except CheckpointError as error:
            return "", str(error)
        return str(saved.path), None

    def _restore(self) -> None:
        found = self._ctx.broadcast(_guarded(self._newest) if self._ctx.is_main else None)
        if isinstance(found, Exception):
            raise found
        if found is None:
            return
        state = torch.load(Path(found) / STATE, map_location="cpu", weights_only=True)
        self._check(state, found)
        self._model.load_state_dict(state["model"])
        for name, part in self._parts.items():
            part.load_state_dict(state[name])
        self.steps = state["steps"]
        self.resumed = True
        self._last = (Path(found), self._place())
        self._ctx.say(f"resumed at step {self.steps} from {found}")
        self._restore_streams(state["rng"])

    def _newest(self) -> str | None:
        """The newest sound checkpoint, or None if there is none at all. Rank 0 only."""
        self._store.sweep()
        damaged: dict[Saved, str] = {}
        for saved in self._store.saved():
            flaw = _flaw(saved)
            if flaw is None:
                self._store.set_aside(damaged)
                return str(saved.path)
            damaged[saved] = flaw
            self._ctx.say(f"checkpoint {saved.path.name} is damaged and passed over: {flaw}")
        if damaged:
            flaws = "; ".join(f"{saved.path.name}: {flaw}" for saved, flaw in damaged.items())
            raise CheckpointError(
                f"none of the {len(damaged)} checkpoints in {self._store.folder} is sound ({flaws}). Starting afresh "
                "would throw away what was trained: restore one from a backup, or move them away."
            )
        return None

    def _check(self, state: dict[str, Any], found: str) -> None:
        missing = [name for name in self._parts if name not in state]
        if missing:
            raise ResumeRefused(f"{found} holds no {', '.join(missing)}")
        difference = _difference(state["model"], self._model.state_dict())
        if difference:
            raise ResumeRefused(f"{found} is of another model: {difference}")
        check = getattr(self._parts.get("loader"), "check_state_dict", None)
        if check is not None:
            check(state["loader"])

    def _restore_streams(self, streams: list[dict[str, Any]]) -> None:
        ctx = self._ctx
        if len(streams) == ctx.world_size:
            rng.restore(streams[ctx.rank], ctx.device)
            return
        rng.seed_all(rng.derive(ctx.seed, "step", self.steps, "rank", ctx.rank))
        ctx.say(f"saved at world size {len(streams)}, now {ctx.world_size}: the ranks' random streams start anew")


def _flaw(saved: Saved) -> str | None:
    try:
        verify(saved.path)
    except Damaged as error:
        return str(error)
    return None


def _guarded(find: Any) -> Any:
    """What ``find`` returns or the error it raises, so that the other ranks, who wait for either, hear of it."""
    try:
        return find()
    except (CheckpointError, OSError) as error:
        return error


def _difference(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    changes = [f"{name} is gone" for name in then if name not in now]
    changes += [f"{name} is new" for name in now if name not in then]
    changes += [
        f"{name} was {_shape(then[name])}, is {_shape(now[name])}"
        for name in now
        if name in then and _shape(then[name]) != _shape(now[name])
    ]
    more = f" and {len(changes) - 5} more" if len(changes) > 5 else ""
    return "; ".join(changes[:5]) + more


def _shape(value: Any) -> Any:
    return tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
