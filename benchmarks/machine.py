"""Where this was measured."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path


def describe() -> dict[str, str | int | float]:
    """Processor, cores this process may use, versions, and the load as it starts."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "torch": version("torch"),
        "load": round(os.getloadavg()[0], 1),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = [line.partition(":")[2] for line in info.read_text().splitlines() if line.startswith("model name")] \
        if info.exists() else []  # fmt: skip
    return names[0].strip() if names else platform.machine()
