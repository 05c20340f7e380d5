"""Fits a line through noisy points with DistributedDataParallel; start it with torchrun or `cloudtrain run`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH = 64


def main() -> None:
    """Join the others, train, leave."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--lr", type=float, default=0.05)
    options = parser.parse_args()
    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    train(options.epochs, options.lr, device)
    dist.destroy_process_group()


def train(epochs: int, lr: float, device: torch.device) -> None:
    """Every rank has its own part of the points; the model is the same on all."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    x = torch.rand(4096, 1)
    y = 3 * x + 1 + 0.01 * torch.randn(x.shape)
    x, y = x[rank::ranks].to(device), y[rank::ranks].to(device)
    model = nn.Linear(1, 1).to(device)
    replica = DistributedDataParallel(model, device_ids=[device.index] if device.type == "cuda" else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for epoch in range(1, epochs + 1):
        loss = torch.zeros(())
        for start in range(0, len(x), BATCH):
            loss = nn.functional.mse_loss(replica(x[start : start + BATCH]), y[start : start + BATCH])
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch}/{epochs}  loss {loss.item():.4f}", flush=True)
    if rank == 0:
        folder = Path(os.environ.get("CLOUDTRAIN_MODEL_DIR", "."))
        torch.save(model.state_dict(), folder / "model.pt")


if __name__ == "__main__":
    main()
