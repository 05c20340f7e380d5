"""What to train: a small convolutional network that reads handwritten digits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset, TensorDataset

import cloudtrain_job as ctj


class Digits(ctj.Task):
    """8x8 grey images, ten classes. The options of ``__init__`` are the ``args`` of job.yaml."""

    def __init__(self, lr: float = 0.01, width: int = 32, weight_decay: float = 0.01) -> None:
        self.lr, self.width, self.weight_decay = lr, width, weight_decay

    def data(self, folders: Mapping[str, Path]) -> tuple[Dataset[Any], Dataset[Any]]:
        """Both sets from the data channel ``train``: images of float32 (N, 1, 8, 8) in 0..1, labels of int64 (N)."""
        file = folders["train"] / "digits.pt"
        if not file.is_file():
            raise ctj.TaskError(f"there is no {file}: run `python prepare.py` first")
        sets = torch.load(file, weights_only=True)
        return TensorDataset(*sets["train"]), TensorDataset(*sets["test"])

    def model(self) -> nn.Module:
        """Three convolutions, two linear layers. Group norm, since batch norm would see only one process's images."""
        width = self.width
        return nn.Sequential(
            *_convolution(1, width),
            *_convolution(width, width),
            nn.MaxPool2d(2),
            *_convolution(width, 2 * width),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(8 * width, 4 * width),
            nn.ReLU(),
            nn.Linear(4 * width, 10),
        )

    def loss(self, model: nn.Module, batch: Any) -> torch.Tensor:
        """The mean cross entropy of a batch. Smoothed labels keep so small a data set from being learnt by heart."""
        images, labels = batch
        return nn.functional.cross_entropy(model(images), labels, label_smoothing=0.1)

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """AdamW; the rate stays as it is when the number of processes changes, since the global batch does."""
        return torch.optim.AdamW(model.parameters(), lr=self.lr, weight_decay=self.weight_decay)

    def schedule(self, optimizer: torch.optim.Optimizer, steps: int) -> torch.optim.lr_scheduler.LRScheduler:
        """Up to ``lr`` and down again, over the whole training."""
        return torch.optim.lr_scheduler.OneCycleLR(optimizer, self.lr, total_steps=steps)

    def measure(self, model: nn.Module, batch: Any) -> Mapping[str, torch.Tensor]:
        """Sums over the test images of a batch."""
        images, labels = batch
        scores = model(images)
        return {
            "accuracy": (scores.argmax(1) == labels).sum(),
            "loss": nn.functional.cross_entropy(scores, labels, reduction="sum"),
        }


def _convolution(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(4, outputs), nn.ReLU()]
