"""A small character model under plain DDP; rank 0 writes the samples per second of the timed steps to a file."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

GLOBAL_BATCH, TOKENS, SYMBOLS, WIDTH = 32, 64, 96, 128
WARM_UP_STEPS, TIMED_STEPS = 10, 80


class CharLM(nn.Module):
    """Two transformer layers over embedded symbols; 0.4 million parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, SYMBOLS)

    def forward(self, symbols: torch.Tensor) -> torch.Tensor:
        """(batch, tokens) of symbol numbers -> (batch, tokens, SYMBOLS) of logits."""
        mask = nn.Transformer.generate_square_subsequent_mask(symbols.shape[1])
        logits: torch.Tensor = self.head(self.body(self.embed(symbols), mask=mask, is_causal=True))
        return logits


def main() -> None:
    """Trains, timed between two barriers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--result", type=Path, required=True)
    result: Path = parser.parse_args().result
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(CharLM())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    _train(model, optimizer, WARM_UP_STEPS)
    dist.barrier()
    started = time.perf_counter()
    _train(model, optimizer, TIMED_STEPS)
    dist.barrier()
    seconds = time.perf_counter() - started
    if dist.get_rank() == 0:
        result.write_text(str(GLOBAL_BATCH * TIMED_STEPS / seconds), encoding="utf-8")
    dist.destroy_process_group()


def _train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    batch = GLOBAL_BATCH // dist.get_world_size()
    for _ in range(steps):
        symbols = torch.randint(SYMBOLS, (batch, TOKENS + 1))
        logits = model(symbols[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), symbols[:, 1:].flatten())
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()


if __name__ == "__main__":
    main()
