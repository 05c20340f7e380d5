"""Which GPUs this machine has and which each node gets. Nothing here touches CUDA: the nodes are forked later."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping


def visible_gpus(env: Mapping[str, str]) -> list[str]:
    """Names as CUDA_VISIBLE_DEVICES takes them: what that variable allows, else what the driver lists."""
    given = env.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        names = [name.strip() for name in given.split(",") if name.strip()]
        return names[: names.index("-1")] if "-1" in names else names
    command = shutil.which("nvidia-smi", path=env.get("PATH"))
    if command is None:
        return []
    try:
        listed = subprocess.run([command, "-L"], check=False, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return []
    count = sum(line.startswith("GPU ") for line in listed.stdout.splitlines()) if listed.returncode == 0 else 0
    return [str(index) for index in range(count)]


def share_out(gpus: list[str], nodes: int, processes: int) -> list[str] | None:
    """Per node its own GPUs, one a process, for CUDA_VISIBLE_DEVICES; None if there are too few for that.

    NCCL refuses two ranks on one GPU, so there is no sharing.
    """
    if len(gpus) < nodes * processes:
        return None
    return [",".join(gpus[node * processes : (node + 1) * processes]) for node in range(nodes)]
