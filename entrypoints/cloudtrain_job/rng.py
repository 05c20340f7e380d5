"""Random numbers: one seed for the model on all ranks, a stream of its own for each rank, both saved and restored."""

from __future__ import annotations

import hashlib
import random
import sys
from typing import Any

import torch


def derive(*parts: object) -> int:
    """A seed of 63 bits made from ``parts``. Hashed, so that neighbouring seeds, epochs or ranks share nothing."""
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def seed_all(seed: int) -> None:
    """Seed torch (CPU and GPUs), python and, if the program uses it, numpy."""
    torch.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)


def capture(device: torch.device) -> dict[str, Any]:
    """The state of this process's generators as plain types, which ``torch.load(weights_only=True)`` accepts."""
    version, words, gauss = random.getstate()
    state: dict[str, Any] = {"torch": torch.get_rng_state(), "python": [version, list(words), gauss]}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        kind, keys, position, has_gauss, cached = numpy.random.get_state()
        state["numpy"] = [kind, [int(key) for key in keys], int(position), int(has_gauss), float(cached)]
    return state


def restore(state: dict[str, Any], device: torch.device) -> None:
    """Set this process's generators to what ``capture`` found."""
    torch.set_rng_state(state["torch"])
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy" in state:
        kind, keys, position, has_gauss, cached = state["numpy"]
        numpy.random.set_state((kind, numpy.array(keys, dtype=numpy.uint32), position, has_gauss, cached))
