"""Environments of nodes as files: what the providers' documents and public logs show, in ``recorded/*.json``.

Written after the shapes that those sources record (``about`` says which); not taken from jobs of our own. A file has
the variables (``env``), the files below /opt/ml, the number of nodes the spec asks for, and what is to be read from it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cloudtrain_launch.cluster import Cluster, resolve
from cloudtrain_launch.spec import LaunchSpec

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))


def load(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((Path(__file__).parent / "recorded" / f"{name}.json").read_text())
    return data


def spec(nodes: int = 0) -> LaunchSpec:
    return LaunchSpec("r1", "entry", "train.py", 1, nodes=nodes)


def opt_ml(root: Path, files: Mapping[str, object]) -> Path:
    """``root`` as /opt/ml with these files: text as it is, anything else as JSON."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return root


def read(name: str, root: Path, **changed: str | None) -> Cluster:
    """What the resolver reads from a recorded environment, with some variables changed or (None) taken away."""
    record = load(name)
    env = {"CLOUDTRAIN_PROVIDER": name.partition("-")[0], **record["env"], **changed}
    if record["files"]:
        env["CLOUDTRAIN_SM_ROOT"] = str(opt_ml(root, record["files"]))
    return resolve({key: value for key, value in env.items() if value is not None}, spec(record["nodes"]))
