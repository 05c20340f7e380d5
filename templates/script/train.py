"""Tells two spirals apart with DistributedDataParallel; start it with torchrun or `cloudtrain run`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, TensorDataset

Points = Dataset[tuple[torch.Tensor, ...]]


def main() -> None:
    """Join the others, train, leave."""
    options = parse()
    device = join()
    run(options, device)
    dist.destroy_process_group()  # after run() has let go of the DDP model: the other order can hang


def run(options: argparse.Namespace, device: torch.device) -> None:
    """The whole training of this rank."""
    torch.manual_seed(options.seed)
    model = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2)).to(device)
    replica = DistributedDataParallel(model, device_ids=[device.index] if device.type == "cuda" else None)
    # The batch of a step over all processes stays the same, and with it the learning rate.
    local_batch = max(options.global_batch // dist.get_world_size(), 1)
    train, test = spirals(4000, seed=1), spirals(1001, seed=2)
    sampler: DistributedSampler[tuple[torch.Tensor, ...]] = DistributedSampler(train, seed=options.seed, drop_last=True)
    loader = DataLoader(train, batch_size=local_batch, sampler=sampler, drop_last=True)
    optimizer = torch.optim.AdamW(replica.parameters(), lr=options.lr)
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)  # another order in every epoch
        loss = train_epoch(replica, loader, optimizer, device)
        if dist.get_rank() == 0 and (epoch + 1) % 5 == 0:
            print(f"epoch {epoch + 1}/{options.epochs}  loss {loss:.4f}", flush=True)
    right, total = evaluate(model, test, device)
    if dist.get_rank() == 0:
        print(f"test accuracy: {right / total:.2%} ({right} of {total})", flush=True)
        save(model)


def parse() -> argparse.Namespace:
    """The options of the job file's ``args``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--global-batch", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def join() -> torch.device:
    """Meet the other processes, and take the GPU of this one if there is any."""
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        dist.init_process_group("nccl")
        return device
    dist.init_process_group("gloo")
    return torch.device("cpu")


def spirals(count: int, seed: int) -> TensorDataset:
    """Points (count, 2) on two spirals and the spiral (count) each belongs to; equal on every process."""
    random = torch.Generator().manual_seed(seed)
    spiral = torch.randint(2, (count,), generator=random)
    turn = torch.rand(count, generator=random)
    angle = 3 * torch.pi * turn + torch.pi * spiral
    points = torch.stack([angle.cos(), angle.sin()], dim=1) * (0.2 + turn[:, None])
    return TensorDataset(points + 0.02 * torch.randn(count, 2, generator=random), spiral)


def train_epoch(
    model: nn.Module,
    loader: DataLoader[tuple[torch.Tensor, ...]],
    optimizer: torch.optim.Optimizer,
    device: torch.device,
) -> float:
    """One pass over this process's part; returns the loss of its last batch."""
    loss = torch.zeros(())
    for points, spiral in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(points.to(device)), spiral.to(device))
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return loss.item()


@torch.no_grad()
def evaluate(model: nn.Module, test: TensorDataset, device: torch.device) -> tuple[int, int]:
    """How many test points are right, of how many. Each process takes every n-th, so none is counted twice."""
    points, spiral = (part[dist.get_rank() :: dist.get_world_size()].to(device) for part in test.tensors)
    counts = torch.stack([(model(points).argmax(1) == spiral).sum(), torch.tensor(len(spiral), device=device)])
    dist.all_reduce(counts)
    right, total = counts.tolist()
    return right, total


def save(model: nn.Module) -> None:
    """Rank 0 writes the model, as a whole or not at all."""
    folder = Path(os.environ.get("CLOUDTRAIN_MODEL_DIR", "."))
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), folder / "model.pt")
    print(f"model: {folder / 'model.pt'}", flush=True)


if __name__ == "__main__":
    main()
