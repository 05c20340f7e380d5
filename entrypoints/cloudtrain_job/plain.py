"""What may go into a checkpoint: types that ``torch.load(weights_only=True)`` reads back.

Checked when saving. A checkpoint that only turns out to be unreadable when a job is resumed is worth nothing, and
reading it with ``weights_only=False`` would run code from a file.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch

from cloudtrain_job.errors import CheckpointError

_AS_THEY_ARE = (bool, int, float, str, type(None))


def plain(value: Any, where: str) -> Any:
    """``value`` in plain types. Numbers of other libraries (numpy) become Python's; the rest is refused by name.

    Raises CheckpointError naming the place, such as ``scheduler.lr_lambdas[0]``.
    """
    if type(value) in _AS_THEY_ARE or isinstance(value, torch.Tensor):
        return value
    if isinstance(value, dict):
        return _plain_dict(value, where)
    if type(value) in (list, tuple):
        return type(value)(plain(part, f"{where}[{index}]") for index, part in enumerate(value))
    number = value.item() if hasattr(value, "item") and getattr(value, "shape", None) == () else None
    if type(number) in (bool, int, float):
        return number
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    raise CheckpointError(
        f"{where} is a {kind}, which a checkpoint cannot hold: only tensors, numbers, text, None, lists, tuples and "
        "dicts of them are read back safely"
    )


def _plain_dict(value: dict[Any, Any], where: str) -> dict[Any, Any]:
    parts = {plain(key, f"a key of {where}"): plain(part, f"{where}.{key}") for key, part in value.items()}
    if not isinstance(value, OrderedDict):
        return parts
    ordered = OrderedDict(parts)
    vars(ordered).update(vars(value))  # a module's state dict carries the versions of its modules like this
    return ordered
