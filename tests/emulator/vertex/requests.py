"""CustomJobs as anybody could write them, in the JSON form of the API."""

from __future__ import annotations

import copy
from typing import Any

from tests.emulator.vertex.clients import BUCKET

POOL = {
    "machineSpec": {"machineType": "g2-standard-4", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1},
    "replicaCount": "1",
    "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100},
    "containerSpec": {
        "imageUri": "europe-docker.pkg.dev/my-project/images/train:1",
        "command": ["python3", "-u", f"/gcs/{BUCKET}/scripts/launch.py"],
        "env": [
            {"name": "CLOUDTRAIN_PROVIDER", "value": "vertex"},
            {"name": "CLOUDTRAIN_SPEC", "value": f"/gcs/{BUCKET}/scripts/spec.json"},
            {"name": "CLOUDTRAIN_CODE", "value": f"/gcs/{BUCKET}/scripts/code.tar.gz"},
        ],
    },
}


def custom_job(name: str = "a-job", nodes: int = 1, env: dict[str, str] | None = None, **scheduling: Any) -> Any:
    """One that the service takes."""
    first = copy.deepcopy(POOL)
    container: Any = first["containerSpec"]
    container["env"] += [{"name": key, "value": value} for key, value in (env or {}).items()]
    pools = [first]
    if nodes > 1:
        pools.append({**copy.deepcopy(first), "replicaCount": str(nodes - 1)})
    spec = {"workerPoolSpecs": pools, "scheduling": {"timeout": "3600s", **scheduling}}
    return {"displayName": name, "jobSpec": spec, "labels": {"cloudtrain_run": f"{name}-run", "team": "vision"}}


def changed(job: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value at a path; None takes it away."""
    found = copy.deepcopy(job)
    inner = found
    for step in path[:-1]:
        inner = inner[step]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return found
