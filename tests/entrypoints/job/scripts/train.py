"""A training that writes down everything the tests compare: which samples, which losses, which final weights."""

from __future__ import annotations

import argparse
import json
import os
import signal
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import Dataset

import cloudtrain_job as ctj


class Numbered(Dataset):
    """Samples that know their number."""

    def __init__(self, length: int) -> None:
        random = torch.Generator().manual_seed(7)
        self.inputs = torch.randn(length, 6, generator=random)
        self.targets = torch.randn(length, 1, generator=random)

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int):
        return index, self.inputs[index], self.targets[index]


def network(dropout: float) -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Dropout(dropout), nn.Linear(16, 1))


def main() -> None:
    options = parse()
    ctx = ctj.init(seed=3)
    model = ctx.wrap(network(options.dropout))
    data = Numbered(options.length)
    loader = ctj.loader(data, global_batch=options.batch, seed=options.order, num_workers=options.workers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5, gamma=0.9)
    state = ctj.Checkpointer(
        ctx,
        model=model,
        optimizer=optimizer,
        loader=loader,
        scheduler=scheduler,
        every_steps=options.save_every,
        keep=options.keep,
    )
    if options.stop == "start":
        interrupt(ctx)
        state.check()
    for epoch in loader.epochs(options.epochs):
        for numbers, inputs, targets in loader:
            loss = (model(inputs) - targets).square().mean()
            optimizer.zero_grad()
            (loss * loader.weight).backward()
            if options.stop == str(state.steps + 1):
                interrupt(ctx)
            optimizer.step()
            scheduler.step()
            ids = numbers.tolist() if loader.local_samples else []
            line = {"epoch": epoch, "step": state.steps + 1, "ids": ids, "sum": loss.item() * len(ids)}
            note(f"steps-{ctx.rank}.jsonl", line)
            state.step()
        if options.stop == f"evaluation-{epoch}":
            interrupt(ctx)
        found = ctj.evaluate(model, data, measure, batch_size=4, state=state)
        if ctx.is_main:
            note("evaluations.jsonl", {"epoch": epoch, "samples": found.samples, **found.sums})
    torch.save({"weights": dict(model.state_dict()), "random": torch.rand(3)}, f"final-{ctx.rank}.pt")
    ctj.finish()


def measure(model: nn.Module, batch):
    numbers, inputs, targets = batch
    return {"numbers": numbers.sum(), "squares": (model(inputs) - targets).square().sum()}


def note(file: str, line: dict) -> None:
    with Path(file).open("a") as lines:
        lines.write(json.dumps(line) + "\n")


def interrupt(ctx: ctj.Context) -> None:
    """SIGTERM to the last rank and all processes of its own, as a platform or torchrun signals a process group."""
    if ctx.rank == ctx.world_size - 1:
        os.killpg(os.getpgid(0), signal.SIGTERM)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=43)
    parser.add_argument("--order", type=int, default=0)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--save-every", type=int, default=1000)
    parser.add_argument("--keep", type=int, default=3)
    parser.add_argument("--stop", default="")
    return parser.parse_args()


if __name__ == "__main__":
    main()
