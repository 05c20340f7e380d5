"""The containers of one start of a job: a folder for each, in which the buckets are mounted, and how it is started.

/gcs/BUCKET   every bucket; the rest of a container's file system would come from its image, and is empty
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cloudtrain.emulator.base import NodePlan
from cloudtrain.emulator.vertex.jobs import Replica
from cloudtrain.providers.reading import entries
from cloudtrain.providers.vertex.places import MOUNT

_LAUNCHER = "launch.py"


def launcher_of(spec: Mapping[str, Any]) -> str:
    """The path of launch.py in a pool's container; "" if that does not start one."""
    command = entries(spec, "containerSpec", "command")
    path = str(command[-1]) if command else ""
    starts = path.startswith(MOUNT) and path.rpartition("/")[2] == _LAUNCHER and ".." not in path.split("/")
    return path if starts and not entries(spec, "containerSpec", "args") else ""


def plan(replica: Replica, folder: Path, buckets: Sequence[Path], services: Mapping[str, str]) -> NodePlan:
    """Lay out a replica's file system in ``folder``, which is made. ``services``: variables that lead to them."""
    root = folder / replica.task
    mount = root / MOUNT.strip("/")
    mount.mkdir(parents=True)
    for bucket in buckets:
        (mount / bucket.name).symlink_to(bucket)
    own = {name: value.replace("{root}", str(root)) for name, value in replica.contract.env.items()}
    launch = root / launcher_of(replica.spec).lstrip("/")
    return NodePlan(root=root, launch=launch, cwd=root, env={**services, **own}, log=folder / f"{replica.task}.log")
