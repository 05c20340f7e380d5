"""The model inside its wrappers, so that names carry no ``module.`` or ``_orig_mod.`` prefix."""

from __future__ import annotations

from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel


def unwrap(model: nn.Module) -> nn.Module:
    """``model`` without DistributedDataParallel, DataParallel and torch.compile around it."""
    while True:
        inner = getattr(model, "_orig_mod", model)
        inner = inner.module if isinstance(inner, (DistributedDataParallel, DataParallel)) else inner
        if inner is model:
            return model
        model = inner
