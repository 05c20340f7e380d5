"""The loop of a ``task:`` job: ``train_ddp.py --task tasks.py:Digits --epochs 5 [options of the task]``.

The task gives model, data, loss and optimizer; the rest is here: device, data parallelism, exact shards, checkpoints
and resuming, preemption, metrics, evaluation that counts every sample once, and the final model in
``CLOUDTRAIN_MODEL_DIR/model.pt`` (a state dict without prefixes, on the CPU) with ``model.json`` beside it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import torch

import cloudtrain_job as ctj
from cloudtrain_job.durations import seconds
from cloudtrain_job.folders import MissingFolder
from cloudtrain_job.options import Parser, add_task_options
from cloudtrain_job.store import write_atomically
from cloudtrain_job.task import load_task
from cloudtrain_job.unwrap import unwrap


def main(arguments: Sequence[str]) -> int:
    """Train; returns the exit code (2: the task or its options are wrong)."""
    try:
        options, task = read_command(arguments)
        ctx = ctj.init(seed=options.seed)
        Training(ctx, task, options).run()
    except ctj.JobError as error:
        sys.stderr.write(f"train_ddp.py: {error}\n")
        return 2 if isinstance(error, (ctj.TaskError, MissingFolder)) else 1
    ctj.finish()
    return 0


def read_command(arguments: Sequence[str]) -> tuple[argparse.Namespace, ctj.Task]:
    """The options of the loop, and the task made with its own. Exits with code 2 for an option that is not known."""
    first = Parser(prog="train_ddp.py", add_help=False)
    first.add_argument("--task", metavar="FILE:CLASS")
    reference = first.parse_known_args(arguments)[0].task
    parser = _parser()
    if reference is None:
        parser.parse(arguments)
    task = load_task(reference)
    names = add_task_options(parser, task)
    options = parser.parse(arguments)
    own = {name: getattr(options, name) for name in names}
    options.task_options = own
    return options, task(**own)


def _parser() -> Parser:
    parser = Parser(prog="train_ddp.py", description="Trains a task with data parallelism.")
    add = parser.add_argument
    add("--task", metavar="FILE:CLASS", required=True, help="what to train: a class that derives from Task")
    add("--epochs", type=positive, default=1, metavar="N", help="default: 1")
    add("--global-batch", type=positive, default=256, metavar="N", help="samples per step over all ranks; default: 256")
    add("--seed", type=int, default=0, metavar="N", help="of the model and the order of the data; default: 0")
    add("--num-workers", type=natural, default=0, metavar="N", help="processes per rank that read data; default: 0")
    add("--log-every", type=positive, default=10, metavar="STEPS", help="between metrics; default: 10")
    add("--checkpoint-every", metavar="TIME", type=interval, help="90s, 10m, or a number of steps; default: 10m")
    add("--eval-every", type=positive, default=1, metavar="EPOCHS", help="between evaluations; default: 1")
    return parser


def positive(text: str) -> int:
    """A whole number from 1 on. Raises ArgumentTypeError."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is less than 1")
    return value


def natural(text: str) -> int:
    """A whole number from 0 on. Raises ArgumentTypeError."""
    return positive(text) if int(text) else 0


def interval(text: str) -> dict[str, Any]:
    """``"10m"`` or a number of steps, as options of the Checkpointer. Raises ValueError."""
    return {"every_steps": positive(text)} if text.isdigit() else {"every": seconds(text)}


class Training:
    """One process's part of a training."""

    def __init__(self, ctx: ctj.Context, task: ctj.Task, options: argparse.Namespace) -> None:
        self.ctx, self.task, self.options = ctx, task, options
        train, self.test = task.data(ctx.data)
        self.loader = ctj.loader(
            train, global_batch=options.global_batch, seed=options.seed, num_workers=options.num_workers
        )
        self.model = ctx.wrap(task.model())
        self.total_steps = options.epochs * len(self.loader)
        self.optimizer = task.optimizer(unwrap(self.model))
        self.schedule = task.schedule(self.optimizer, self.total_steps)
        self.state = ctj.Checkpointer(
            ctx,
            model=self.model,
            optimizer=self.optimizer,
            loader=self.loader,
            scheduler=self.schedule,
            **(options.checkpoint_every or {}),
        )

    def run(self) -> None:
        """Train what is left to train, evaluate, and write the model."""
        self.state.check()
        result, epochs = None, self.options.epochs
        for epoch in self.loader.epochs(epochs):
            loss, rate = self._train()
            due = epoch + 1 == epochs or (epoch + 1) % self.options.eval_every == 0
            result = self._evaluate() if due else None
            self._report(epoch, loss, rate, result)
        self.state.save(again=False)
        self._finish(result or self._evaluate())

    def _train(self) -> tuple[float, float]:
        """The rest of the present epoch: its mean loss, and the samples per second."""
        progress = Progress(self.ctx)
        for batch in self.loader:
            loss = self._step(self.ctx.to_device(batch))
            progress.add(loss, self.loader)
            if (self.state.steps + 1) % self.options.log_every == 0:
                self._log(loss, progress)
            self.state.step()
        return progress.mean_loss(), progress.rate()

    def _step(self, batch: Any) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = self.task.loss(self.model, batch)
        (loss * self.loader.weight).backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        if self.schedule is not None:
            self.schedule.step()
        return loss.detach()

    def _log(self, loss: torch.Tensor, progress: Progress) -> None:
        loader = self.loader
        (total,) = self.ctx.sum(float(loss) * loader.local_samples)
        ctj.log(
            step=self.state.steps + 1,
            total_steps=self.total_steps,
            epoch=loader.epoch,
            loss=loss if loader.local_samples else None,
            mean_loss=total / loader.batch_samples,
            samples=loader.samples,
            samples_per_second=progress.rate(),
        )

    def _evaluate(self) -> ctj.Evaluation | None:
        if self.test is None:
            return None
        options = self.options
        per_rank = -(-options.global_batch // self.ctx.world_size)
        workers = options.num_workers
        return ctj.evaluate(
            self.model, self.test, self.task.measure, batch_size=per_rank, num_workers=workers, state=self.state
        )

    def _report(self, epoch: int, loss: float, rate: float, result: ctj.Evaluation | None) -> None:
        if not self.ctx.is_main:
            return
        measured = result.means if result else {}
        if measured:
            values = {f"test_{name}": value for name, value in measured.items()}
            ctj.log(step=self.state.steps, epoch=epoch, samples=self.loader.samples, **values)
        parts = [f"epoch {epoch + 1}/{self.options.epochs}", f"step {self.state.steps}"]
        parts += [f"loss {loss:.4f}"] if rate else []  # nothing was left to train of an epoch resumed at its end
        parts += [f"test {name} {_shown(name, value)}" for name, value in measured.items()]
        parts += [f"{rate:.0f} samples/s"] if rate else []
        print("  ".join(parts), flush=True)

    def _finish(self, result: ctj.Evaluation | None) -> None:
        if not self.ctx.is_main:
            return
        facts: dict[str, Any] = {"step": self.state.steps, "samples": self.loader.samples}
        if result is not None:
            for name, total in result.sums.items():
                print(_verdict(name, total, result.samples), flush=True)
            facts.update({f"test_{name}": value for name, value in result.means.items()}, test_samples=result.samples)
        self._write_model(facts)
        ctj.log(**facts, epoch=self.options.epochs - 1, final=True)

    def _write_model(self, facts: dict[str, Any]) -> None:
        weights = {name: value.cpu() for name, value in unwrap(self.model).state_dict().items()}
        about = {
            "task": self.options.task,
            "options": {name: _text(value) for name, value in self.options.task_options.items()},
            "epochs": self.options.epochs,
            "global_batch": self.options.global_batch,
            "seed": self.options.seed,
            **facts,
            "run_id": self.ctx.run_id,
            "torch": str(torch.__version__),
        }
        place = self.ctx.model_dir / "model.pt"
        write_atomically(place, lambda file: torch.save(weights, file))
        write_atomically(place.with_suffix(".json"), lambda file: file.write(json.dumps(about, indent=1).encode()))
        print(f"model: {place}", flush=True)


class Progress:
    """Loss and speed of an epoch, over all ranks."""

    def __init__(self, ctx: ctj.Context) -> None:
        self._ctx = ctx
        self._loss = torch.zeros((), dtype=torch.float64, device=ctx.device)
        self._counted = 0
        self._samples = 0
        self._started = time.perf_counter()

    def add(self, loss: torch.Tensor, loader: ctj.Loader) -> None:
        """One step is done."""
        if loader.local_samples:
            self._loss += loss * loader.local_samples
        self._counted += loader.local_samples
        self._samples += loader.batch_samples

    def rate(self) -> float:
        """Samples per second of all ranks since the epoch began."""
        return self._samples / max(time.perf_counter() - self._started, 1e-9)

    def mean_loss(self) -> float:
        """Over all samples of all ranks; all ranks must call it."""
        loss, counted = self._ctx.sum(float(self._loss), self._counted)
        return loss / counted if counted else float("nan")


def _shown(name: str, value: float) -> str:
    return f"{value:.2%}".replace("%", " %") if name == "accuracy" else f"{value:.4f}"


def _verdict(name: str, total: float, samples: int) -> str:
    of = f"{total:.0f} of {samples}" if name == "accuracy" else f"mean of {samples}"
    return f"test {name}: {_shown(name, total / samples)} ({of}, each counted once)"


def _text(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float, list, type(None))) else str(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
