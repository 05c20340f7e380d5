"""What a cloud node does before its workers start, in a process of its own (``helper.Chore``).

Every step is for this node alone and may take minutes; the launcher stays in touch with the other nodes meanwhile, and
they wait, however long it takes: only the job's own time limit ends that. A step that fails ends the job on all nodes
at once, with the reason. What is printed here is the node's log.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from cloudtrain_launch import data, deliver, gib, requirements, secret_stores, unpack
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
    for variable, source in cluster.sources.items():
        channel = variable[len("CLOUDTRAIN_DATA_") :].lower()
        shared_out = _channel(spec, channel).get("shard") == "by-object"
        copied = _channel(spec, channel).get("mode") == "download"
        part = (cluster.node, cluster.nodes) if shared_out else (0, 1)
        data.bring(f"data.{channel}", source, cluster.folders[variable], part, copy=copied)
    return {"env": {**network, **secrets}}


def _channel(spec: LaunchSpec, name: str) -> Mapping[str, str]:
    return next(channel for key, channel in spec.channels.items() if key.lower() == name)
