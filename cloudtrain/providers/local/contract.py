"""What a local node finds in its environment: the counterpart of a cloud's in-container contract.

``entrypoints/cloudtrain_launch/contracts/local.py`` reads it; CLOUDTRAIN_HOSTS and CLOUDTRAIN_PORT are added by the
host process, which knows the network. ``harness`` is what a simulated node has beside any contract.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def harness(node: int, *, run: Path, temporary: Path, cores: int, device: str, token: str) -> dict[str, str]:
    """What is told to node ``node`` of the run in folder ``run`` since it shares a machine with the others."""
    return {
        "CLOUDTRAIN_NODE_DIR": str(run / "nodes" / str(node)),
        "CLOUDTRAIN_NODE_TMP": str(temporary / f"node-{node}"),
        "CLOUDTRAIN_NODE_CORES": str(cores),
        "CLOUDTRAIN_NODE_DEVICE": device,
        "CLOUDTRAIN_TOKEN": token,
        "CLOUDTRAIN_LOG_DIR": str(run / "logs"),
    }


def node_environment(
    node: int, *, run: Path, data: Mapping[str, Path], outputs: Mapping[str, Path], checkpoints: Path
) -> dict[str, str]:
    """Local mode's own contract. ``data`` and ``outputs`` are by name."""
    return {
        "CLOUDTRAIN_PROVIDER": "local",
        "CLOUDTRAIN_SPEC": str(run / "spec.json"),
        "CLOUDTRAIN_NODE_RANK": str(node),
        "CLOUDTRAIN_CHECKPOINT_DIR": str(checkpoints),
        "CLOUDTRAIN_OUTPUT_DIR": str(run / "output"),
        "CLOUDTRAIN_MODEL_DIR": str(run / "model"),
        "CLOUDTRAIN_METRICS_DIR": str(run / "metrics"),
        **{f"CLOUDTRAIN_DATA_{name.upper()}": str(path) for name, path in data.items()},
        **{f"CLOUDTRAIN_OUTPUT_{name.upper()}": str(path) for name, path in outputs.items()},
    }
