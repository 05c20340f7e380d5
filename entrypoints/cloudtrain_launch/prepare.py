"""What a cloud node does before its workers start, in a process of its own (``helper.Chore``).

Every step is for this node alone and may take minutes; the launcher stays in touch with the other nodes meanwhile, and
they wait, however long it takes: only the job's own time limit ends that. A step that fails ends the job on all nodes
at once, with the reason. What is printed here is the node's log.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from cloudtrain_launch import data, deliver, gib, layout, requirements, secret_stores, unpack
from cloudtrain_launch.cluster import Cluster, make_folders
from cloudtrain_launch.spec import LaunchSpec


def run(env: Mapping[str, str], spec: LaunchSpec, cluster: Cluster, code: str) -> dict[str, Any]:
    """Do it all; returns what the workers are given besides, as ``{"env": ...}``. Raises LaunchError.

    ``code`` is the folder for the user's code, ``cluster`` one with its folders placed (``layout.placed``).
    """
    make_folders(cluster)
    if env.get("CLOUDTRAIN_CODE"):
        unpack.unpack(env["CLOUDTRAIN_CODE"], code)
    if spec.requirements:
        requirements.install(os.path.join(code, spec.requirements), env)
    deliver.check(cluster, env)
    secrets = secret_stores.read(env, cluster.provider)  # before the data: what fails at once is to fail at once
    network = gib.variables(env, spec.env) if cluster.provider == "vertex" else {}
    for name, channel in spec.channels.items():
        variable = layout.data_variable(name)
        if variable in cluster.sources:
            part = (cluster.node, cluster.nodes) if channel.get("shard") == "by-object" else (0, 1)
            copied = channel.get("mode") == "download"
            data.bring(f"data.{name}", cluster.sources[variable], cluster.folders[variable], part, copy=copied)
    return {"env": {**network, **secrets}}
