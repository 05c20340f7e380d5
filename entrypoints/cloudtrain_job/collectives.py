"""Small values between ranks, in a way that lets every rank leave.

gloo's threads let go of a tensor some time after the collective is over. If theirs is the last reference to one that
Python made, they need the interpreter lock for it. A rank that leaves meanwhile waits for them while it holds that lock
(a DDP model that lets go of the process group does), or ends the interpreter under them: it hangs, or aborts. Both were
seen with torch 2.13 on a busy machine. So what takes part here stays referenced, to the end of the process and beyond.
"""

from __future__ import annotations

import ctypes
import pickle
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

_recent: deque[Any] = deque(maxlen=32)  # tensors: far more collectives than gloo's threads can be late by
_groups: list[Any] = []  # process groups that were left
for _kept in (_recent, _groups):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_kept))  # the end of the interpreter does not empty them either

_DRAIN = 0.02  # seconds


def reduce(values: Sequence[float], how: str, device: torch.device) -> list[float]:
    """Per value, its SUM or MAX over all ranks, in double precision."""
    # A group the script made itself may have no CPU backend.
    place = device if dist.get_backend() == "nccl" else torch.device("cpu")
    tensor = torch.tensor(values, dtype=torch.float64, device=place)
    _recent.append(tensor)
    dist.all_reduce(tensor, op=getattr(dist.ReduceOp, how))
    return [float(value) for value in tensor.tolist()]


def gather(value: Any, world: int) -> list[Any]:
    """``value`` of every rank, in order of rank."""
    if dist.get_backend() == "nccl":
        found: list[Any] = [None] * world
        dist.all_gather_object(found, value)
        return found
    data = pickle.dumps(value)
    sizes = [int.from_bytes(size, "big") for size in _gather_bytes(len(data).to_bytes(8, "big"), world)]
    parts = _gather_bytes(data.ljust(max(sizes), b"\0"), world)
    return [pickle.loads(part[:size]) for part, size in zip(parts, sizes)]


def leave() -> None:
    """Leave the default process group."""
    if dist.is_initialized():
        _groups.append(dist.group.WORLD)
        time.sleep(_DRAIN)  # lets go of the interpreter lock, for tensors of the script's own collectives
        dist.destroy_process_group()


def _gather_bytes(data: bytes, world: int) -> list[bytearray]:
    mine, all_of_them = bytearray(data), [bytearray(len(data)) for _ in range(world)]
    tensors = [torch.frombuffer(part, dtype=torch.uint8) for part in (mine, *all_of_them)]
    _recent.append(tensors)
    dist.all_gather(tensors[1:], tensors[0])
    return all_of_them
